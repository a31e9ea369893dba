import type { ReactNode } from 'react';
import { start } from '../shared/shell.tsx';
import { Toasts } from '../shared/toasts.tsx';
import { pages } from './pages.ts';

/** Wraps all pages; keeps its state when the page changes. */
function Frame({ children }: { readonly children: ReactNode }): ReactNode {
  return (
    <>
      {children}
      <Toasts />
    </>
  );
}

void start('agctl', pages, Frame);
