import type { ReactNode } from 'react';

/** What is served, and how it is doing. */
export function Overview(): ReactNode {
  return <p className="quiet">Nothing to show yet.</p>;
}
