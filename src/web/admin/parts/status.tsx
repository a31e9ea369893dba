import type { ReactNode } from 'react';
import { statusTone } from '../model/fields.ts';

/** A status with its mark, so that nothing depends on colour. */
export function Status({ status }: { readonly status: number }): ReactNode {
  const { mark, tone } = statusTone(status);
  return (
    <span className={tone}>
      {mark} {status === 0 ? 'none' : status}
    </span>
  );
}
