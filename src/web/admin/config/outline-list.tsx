import { type ReactNode, useDeferredValue, useEffect, useState } from 'react';
import { visible } from '../../shared/visible.ts';
import type { Heading } from './outline.ts';

/** The sections of the configuration, as links to their places. */
export function Outline({
  text,
  goTo,
}: {
  readonly text: string;
  readonly goTo: (offset: number) => void;
}): ReactNode {
  const latest = useDeferredValue(text);
  const [headings, setHeadings] = useState<readonly Heading[]>([]);
  useEffect(() => {
    let isGone = false;
    import('./outline.ts').then(
      ({ outlineOf }) => {
        if (!isGone) setHeadings(outlineOf(latest));
      },
      // The editor next to it reports that it could not be loaded.
      () => undefined,
    );
    return () => {
      isGone = true;
    };
  }, [latest]);
  if (headings.length === 0) return null;
  return (
    <details className="panel outline" open>
      <summary>Outline</summary>
      <ol className="plain-list">
        {headings.map(({ label, depth, offset }) => (
          <li key={offset} style={{ paddingInlineStart: `${depth}rem` }}>
            <button type="button" className="plain" onClick={() => goTo(offset)}>
              {visible(label)}
            </button>
          </li>
        ))}
      </ol>
    </details>
  );
}
