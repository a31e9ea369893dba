import { type ReactNode, useState } from 'react';
import { ask } from '../shared/api.ts';
import { visible } from '../shared/visible.ts';
import { deleteLater } from './deletions.ts';
import { amountOf, ErasureList } from './erasure.tsx';
import type { Erasure } from './model.ts';
import { Unreachable } from './placeholder.tsx';

/** Deletes one entity, document or session: shows first what that includes, and can be undone for some seconds. */
export function Removal({
  what,
  name,
  path,
  hides,
  gone,
}: {
  /** `document`, `session`, … */
  readonly what: string;
  readonly name: string;
  readonly path: string;
  /** Key that `useDeletions` returns meanwhile. */
  readonly hides: string;
  readonly gone?: () => void;
}): ReactNode {
  const [preview, setPreview] = useState<Erasure>();
  const [error, setError] = useState<Error>();
  const look = (): void => {
    setError(undefined);
    ask<Erasure>(`${path}?preview=true`, { method: 'DELETE' }).then(setPreview, setError);
  };
  const confirm = (token: string): void =>
    deleteLater({
      key: hides,
      what: visible(name),
      path: `${path}?token=${encodeURIComponent(token)}`,
      ...(gone === undefined ? {} : { done: gone }),
    });
  return (
    <>
      {error === undefined ? null : <Unreachable error={error} retry={look} />}
      {preview === undefined ? (
        <button type="button" onClick={look}>
          Delete {what} …
        </button>
      ) : (
        <section className="panel problem" aria-label={`Delete ${what}`}>
          <p role="status">
            <strong>This deletes {amountOf(preview)}.</strong>
          </p>
          <ErasureList erasure={preview} />
          <div className="row">
            {/* biome-ignore lint/a11y/noAutofocus: it replaces the button that had the focus. */}
            <button type="button" autoFocus onClick={() => setPreview(undefined)}>
              Keep
            </button>
            <button type="button" className="danger" onClick={() => confirm(preview.token)}>
              Delete
            </button>
          </div>
        </section>
      )}
    </>
  );
}
