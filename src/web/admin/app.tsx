import type { ReactNode } from 'react';
import { start } from '../shared/shell.tsx';
import { Toasts } from '../shared/toasts.tsx';
import { actionsOf } from './actions.ts';
import { pages } from './pages.ts';
import { Account } from './parts/account.tsx';
import { Connection } from './parts/connection.tsx';

/** Wraps all pages; keeps its state when the page changes. */
function Frame({ children }: { readonly children: ReactNode }): ReactNode {
  return (
    <>
      {children}
      <Toasts />
    </>
  );
}

void start({ name: 'agctl', pages, Gate: Frame, Banner: Connection, Account, actions: actionsOf });
