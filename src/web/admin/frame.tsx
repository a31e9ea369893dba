import { type ReactNode, useEffect } from 'react';
import { Toasts } from '../shared/toasts.tsx';
import { followRequests } from './model/requests.ts';

/** Around all pages: what outlives the change from one to another. */
export function Frame({ children }: { readonly children: ReactNode }): ReactNode {
  useEffect(() => {
    const gone = new AbortController();
    followRequests(gone.signal);
    return () => gone.abort();
  }, []);
  return (
    <>
      {children}
      <Toasts />
    </>
  );
}
