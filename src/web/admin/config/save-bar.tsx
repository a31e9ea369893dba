import { type ReactNode, useEffect, useRef, useState } from 'react';
import { ask } from '../../shared/api.ts';
import { download } from '../../shared/download.ts';
import { Failure } from '../../shared/form.tsx';
import { visible } from '../../shared/visible.ts';
import { WithCode } from '../../shared/with-code.tsx';
import { Diff } from './code.tsx';

/** Response of `/api/config/file`. */
export interface ConfigFile {
  readonly path: string;
  /** With placeholders for secrets. */
  readonly text: string | null;
  /** The active configuration. */
  readonly loaded: string | null;
  readonly problem: string | null;
  readonly hash: string | null;
  /** Why it cannot be saved. */
  readonly readOnly: string | null;
  /** Whether a change of the file is loaded within a second. */
  readonly watching: boolean;
}

type Outcome =
  | { readonly kind: 'none' | 'saving' }
  | { readonly kind: 'saved' | 'failed'; readonly message: string };

/** Saves after a review of the changes; downloads the text; reloads the file. */
export function SaveBar({
  file,
  start,
  text,
  hasErrors,
  restore,
  reload,
}: {
  readonly file: ConfigFile;
  readonly start: string;
  readonly text: string;
  readonly hasErrors: boolean;
  readonly restore: () => void;
  readonly reload: () => void;
}): ReactNode {
  const [isReviewing, setReviewing] = useState(false);
  const [outcome, setOutcome] = useState<Outcome>({ kind: 'none' });
  const isDirty = text !== start;
  const reason = file.readOnly ?? file.problem;
  const save = (): void => {
    setOutcome({ kind: 'saving' });
    ask<{ message: string }>('/api/config', { method: 'POST', body: { text, hash: file.hash } }).then(
      ({ message }) => {
        setReviewing(false);
        setOutcome({ kind: 'saved', message });
        reload();
      },
      (error: Error) => setOutcome({ kind: 'failed', message: error.message }),
    );
  };
  return (
    <>
      <div className="row bar">
        <button
          type="button"
          className="primary"
          disabled={reason !== null || !isDirty || hasErrors}
          onClick={() => setReviewing(true)}
        >
          Save …
        </button>
        <button type="button" disabled={!isDirty} onClick={restore}>
          Undo all changes
        </button>
        <button type="button" onClick={() => download('gateway.yaml', text, 'application/yaml')}>
          Download
        </button>
        <button type="button" onClick={reload}>
          Reload the file
        </button>
      </div>
      {reason === null ? null : (
        <p className="quiet">
          Cannot be saved from here: <WithCode text={reason} />.
        </p>
      )}
      {reason === null && isDirty && hasErrors ? (
        <p className="quiet">It can be saved once it has no errors.</p>
      ) : null}
      <p role="status">
        {outcome.kind === 'saved' ? <span className="good">✓ {visible(outcome.message)}</span> : null}
        {outcome.kind === 'failed' ? <span className="bad">✗ {visible(outcome.message)}</span> : null}
      </p>
      {isReviewing ? (
        <Review
          path={file.path}
          isWatched={file.watching}
          before={start}
          after={text}
          isSaving={outcome.kind === 'saving'}
          problem={outcome.kind === 'failed' ? outcome.message : ''}
          save={save}
          close={() => setReviewing(false)}
        />
      ) : null}
    </>
  );
}

function Review({
  path,
  isWatched,
  before,
  after,
  isSaving,
  problem,
  save,
  close,
}: {
  readonly path: string;
  readonly isWatched: boolean;
  readonly before: string;
  readonly after: string;
  readonly isSaving: boolean;
  readonly problem: string;
  readonly save: () => void;
  readonly close: () => void;
}): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} className="review" aria-labelledby="review" onClose={close}>
      <h2 id="review">What changes</h2>
      <p>
        <code>{path}</code>{' '}
        <span className="quiet">
          {isWatched
            ? 'The gateway loads it as soon as it is written.'
            : 'The gateway must be restarted to load it.'}
        </span>
      </p>
      <Diff label="What changes" before={before} after={after} />
      <Failure text={problem} />
      <div className="row">
        <button type="button" className="primary" disabled={isSaving} onClick={save}>
          Write the file
        </button>
        <form method="dialog">
          <button type="submit">Cancel</button>
        </form>
      </div>
    </dialog>
  );
}
