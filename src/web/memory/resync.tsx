import type { ReactNode } from 'react';
import { count, counted, duration, time } from '../shared/format.ts';
import { useShortcuts } from '../shared/shortcuts.ts';
import { visible } from '../shared/visible.ts';
import type { SyncStatus } from './model.ts';
import type { Sync } from './use-sync.ts';

/** The button that starts a sync of the docs folder, its progress, and its result. */
export function Resync({ sync }: { readonly sync: Sync }): ReactNode {
  const { status, isAsked, start } = sync;
  const isRunning = isAsked || status?.state === 'running';
  useShortcuts([{ keys: 's', what: 'Re-sync Docs', run: () => isRunning || start() }]);
  return (
    <section className="panel" aria-labelledby="sync">
      <h2 id="sync">Documents</h2>
      <p className="row">
        {/* Not `disabled`, which would take the focus from the user who has just pressed it. */}
        <button
          type="button"
          className="primary"
          aria-disabled={isRunning}
          aria-keyshortcuts="s"
          onClick={() => isRunning || start()}
        >
          {isRunning ? 'Syncing…' : 'Re-sync Docs'}
        </button>
        {isRunning && status?.state === 'running' ? <Progress status={status} /> : null}
      </p>
      {/* Only start and end are announced, not every document. */}
      <p role="status">
        {isRunning
          ? 'Reading the docs folder. Documents that have not changed are skipped.'
          : status && summary(status)}
      </p>
      {isRunning || status === undefined ? null : <Failures status={status} />}
    </section>
  );
}

function Progress({ status: { scanned, total, durationMs } }: { readonly status: SyncStatus }): ReactNode {
  return (
    <span className="progress">
      <progress
        aria-label="Documents read"
        max={Math.max(1, total)}
        value={total === 0 ? undefined : scanned}
      />{' '}
      {total === 0 ? 'looking at the folder' : `${count(scanned)} of ${count(total)}`}, {duration(durationMs)}
    </span>
  );
}

/** `128 unchanged, 3 updated, 1 failed`; zeros are left out. */
export function summary(status: SyncStatus): string {
  const { state, unchanged, added, updated, removed, failed, startedAt, durationMs } = status;
  if (state === 'idle' || startedAt === null) return 'The docs folder has not been read yet.';
  const parts = Object.entries({ unchanged, added, updated, removed, failed })
    .filter(([, value]) => value > 0)
    .map(([name, value]) => `${count(value)} ${name}`);
  const what = parts.length === 0 ? 'no documents' : parts.join(', ');
  const mark = state === 'failed' ? '✗ Stopped: ' : failed > 0 ? '! ' : '✓ ';
  return `${mark}${what}. Read ${time(startedAt)}, in ${duration(durationMs)}.`;
}

function Failures({ status: { errors, failed, state } }: { readonly status: SyncStatus }): ReactNode {
  if (errors.length === 0) return null;
  return (
    <>
      <h3>{state === 'failed' ? 'Why it stopped' : `${counted(failed, 'document')} failed`}</h3>
      <ul className="failures">
        {errors.map(({ path, message }) => (
          <li key={`${path}\n${message}`}>
            {path === '' ? null : <code>{visible(path)}</code>} {visible(message)}
          </li>
        ))}
      </ul>
      {failed > errors.length ? (
        <p className="quiet">
          And {counted(failed - errors.length, 'other')}; the log of the backend names them.
        </p>
      ) : null}
    </>
  );
}
