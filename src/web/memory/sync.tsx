import { type ReactNode, useCallback, useEffect, useRef, useState } from 'react';
import { ask } from '../shared/api.ts';
import { count, counted, duration, time } from '../shared/format.ts';
import { isRefusal, whenShownAgain } from '../shared/refusal.ts';
import { useShortcuts } from '../shared/shortcuts.tsx';
import { visible } from '../shared/visible.ts';
import { API, type SyncStatus } from './model.ts';

/** Polling intervals in ms: during a sync, and otherwise. */
const RUNNING = 500;
const IDLE = 2_000;

interface Sync {
  readonly status: SyncStatus | undefined;
  readonly error: Error | undefined;
  /** Whether this page started a sync that has not ended. */
  readonly isAsked: boolean;
  readonly start: () => void;
  readonly reload: () => void;
}

/**
 * The sync of the docs folder, whoever started it; polls the backend.
 *
 * @param ended called when a sync has ended, which may have changed what is stored
 */
export function useSync(ended: () => void): Sync {
  const [status, setStatus] = useState<SyncStatus>();
  const [error, setError] = useState<Error>();
  const [isAsked, setAsked] = useState(false);
  const [round, setRound] = useState(0);
  const wasRunning = useRef(false);
  const onEnd = useRef(ended);
  onEnd.current = ended;
  const take = useCallback((next: SyncStatus) => {
    setStatus(next);
    setError(undefined);
    const isRunning = next.state === 'running';
    if (wasRunning.current && !isRunning) onEnd.current();
    wasRunning.current = isRunning;
    return isRunning;
  }, []);
  useEffect(() => {
    // A change of it starts the effect again.
    void round;
    const gone = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const look = (): void => {
      ask<{ sync: SyncStatus }>(`${API}/ingest/status`, { signal: gone.signal }).then(
        ({ sync }) => {
          if (!gone.signal.aborted) timer = setTimeout(look, take(sync) ? RUNNING : IDLE);
        },
        (problem: Error) => {
          if (gone.signal.aborted) return;
          setError(problem);
          if (isRefusal(problem)) whenShownAgain(look, gone.signal);
          else timer = setTimeout(look, IDLE);
        },
      );
    };
    look();
    return () => {
      gone.abort();
      clearTimeout(timer);
    };
  }, [round, take]);
  const reload = useCallback(() => setRound((rounds) => rounds + 1), []);
  const start = useCallback(() => {
    setAsked(true);
    ask<{ sync: SyncStatus }>(`${API}/ingest/docs`, { method: 'POST' })
      .then(({ sync }) => take(sync), setError)
      .finally(() => {
        setAsked(false);
        reload();
        // Also if the sync ended before the first poll.
        onEnd.current();
      });
    setTimeout(reload, 50);
  }, [take, reload]);
  return { status, error, isAsked, start, reload };
}

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
function summary(status: SyncStatus): string {
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
