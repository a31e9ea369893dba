import { type ComponentType, Fragment, type ReactNode, StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { type Page, Shell } from './shell.tsx';

/** Puts an application into its document; `Gate` may ask for something before the pages are shown. */
export function start(
  name: string,
  pages: readonly Page[],
  Gate: ComponentType<{ readonly children: ReactNode }> = Fragment,
): void {
  const root = document.getElementById('root');
  if (root === null) throw new Error('the document has no element for the application');
  createRoot(root).render(
    <StrictMode>
      <Gate>
        <Shell name={name} pages={pages} />
      </Gate>
    </StrictMode>,
  );
}
