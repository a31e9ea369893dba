import type { ReactNode } from 'react';
import { Toasts } from '../shared/toasts.tsx';

/** Around all pages: what outlives the change from one to another. */
export function Frame({ children }: { readonly children: ReactNode }): ReactNode {
  return (
    <>
      {children}
      <Toasts />
    </>
  );
}
