import type { ReactNode } from 'react';
import { visible } from './visible.ts';

/** A message of a program: what is between backticks is displayed as code. */
export function WithCode({ text }: { readonly text: string }): ReactNode {
  return visible(text)
    .split(/`([^`]*)`/)
    .map((part, index) =>
      // biome-ignore lint/suspicious/noArrayIndexKey: a part is identified by its position.
      index % 2 === 1 ? <code key={index}>{part}</code> : part,
    );
}
