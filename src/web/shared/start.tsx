import { type ComponentType, Fragment, type ReactNode, StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { loadFirst, loadOthers, type Page } from './page.ts';
import { Shell } from './shell.tsx';

/** Renders an application into its document; `Gate` may ask for something before the pages are displayed. */
export async function start(
  name: string,
  pages: readonly Page[],
  Gate: ComponentType<{ readonly children: ReactNode }> = Fragment,
): Promise<void> {
  const root = document.getElementById('root');
  if (root === null) throw new Error('the document has no element for the application');
  await loadFirst(pages);
  createRoot(root).render(
    <StrictMode>
      <Gate>
        <Shell name={name} pages={pages} />
      </Gate>
    </StrictMode>,
  );
  loadOthers(pages);
}
