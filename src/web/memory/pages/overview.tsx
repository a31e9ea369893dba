import type { ReactNode } from 'react';

/** What is stored, and when the docs folder was read last. */
export function Overview(): ReactNode {
  return <p className="quiet">Nothing to show yet.</p>;
}
