import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { type Page, Shell } from './shell.tsx';

/** Puts an application into its document. */
export function start(name: string, pages: readonly Page[]): void {
  const root = document.getElementById('root');
  if (root === null) throw new Error('the document has no element for the application');
  createRoot(root).render(
    <StrictMode>
      <Shell name={name} pages={pages} />
    </StrictMode>,
  );
}
