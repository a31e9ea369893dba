import { type FormEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import { LIMITS } from '../../../core/limits.ts';
import { requestLine } from '../../../core/trace/request-line.ts';
import { verdictText } from '../../../core/trace/verdict.ts';
import type { TraceModel } from '../../../core/trace-model.ts';
import { clock } from '../../shared/format.ts';
import { LiveText } from '../../shared/live-text.tsx';
import { Command } from '../../shared/problem.tsx';
import { Link, navigate, useLocation } from '../../shared/router.tsx';
import { useShortcuts } from '../../shared/shortcuts.tsx';
import { say } from '../../shared/toasts.tsx';
import { visible } from '../../shared/visible.ts';
import { callerOf, lineOf, problemOf, subjectOf } from '../model/fields.ts';
import { firstRequest, useOverview } from '../model/overview.ts';
import { type Entry, useRequests } from '../model/requests.ts';
import { expressionLike, RequestDrawer } from '../parts/request-drawer.tsx';
import { Status } from '../parts/status.tsx';
import { TraceView, toneOf } from '../trace/trace-view.tsx';
import {
  choose,
  type KeptTrace,
  load,
  stopTracing,
  traceNext,
  useTraces,
  type Waiting,
} from '../trace/traces.ts';

/** Waits for the next request, then shows how it was processed. */
export function Trace(): ReactNode {
  const { kept, waiting, chosen } = useTraces();
  const shown = kept.find(({ id }) => id === chosen) ?? kept[0];
  return (
    <>
      <TraceForm state={waiting} />
      <LiveText text={spoken(waiting, kept[0])} />
      {waiting.kind === 'waiting' && kept[0]?.state !== 'live' ? (
        <WaitingFor state={waiting} isFirst={kept.length === 0} />
      ) : null}
      {kept.length === 0 && waiting.kind === 'idle' ? <Nothing /> : null}
      <div className={kept.length > 1 ? 'trace-page' : ''}>
        {kept.length > 1 ? <TraceList kept={kept} shown={shown} /> : null}
        {shown === undefined ? null : <TraceView key={shown.id} trace={shown} />}
      </div>
      <RecentRequests />
    </>
  );
}

/** One button; which requests, and how many, is only asked of those who want to say so. */
function TraceForm({ state }: { readonly state: Waiting }): ReactNode {
  const { query } = useLocation();
  const asked = query.get('expression') ?? '';
  const starts = query.get('start') !== null;
  const [expression, setExpression] = useState(asked);
  const [count, setCount] = useState('1');
  const [again, setAgain] = useState(false);
  const [isOpen, setOpen] = useState(asked !== '');
  const input = useRef<HTMLInputElement>(null);
  const problem = useId();
  const isOn = state.kind === 'connecting' || state.kind === 'waiting';
  const begin = (): void =>
    void traceNext({ expression, count: Math.max(1, Math.trunc(Number(count))), again });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    begin();
  };
  // A link of a request leads here to trace the next one like it.
  useEffect(() => {
    setExpression(asked);
    if (asked !== '') setOpen(true);
    if (!starts) return;
    navigate('/trace', asked === '' ? {} : { expression: asked }, { replace: true });
    scrollTo(0, 0);
    void traceNext({ expression: asked, count: 1, again: false });
  }, [asked, starts]);
  useShortcuts([
    { keys: 'n', what: 'trace the next request', run: begin },
    { keys: 'Escape', what: 'stop waiting', run: stopTracing },
    {
      keys: '/',
      what: 'say which request',
      run: () => {
        flushSync(() => setOpen(true));
        input.current?.focus();
      },
    },
  ]);
  return (
    <form className="panel" onSubmit={submit}>
      <div className="row">
        {isOn ? (
          // Two elements: one that becomes a submit button while it is clicked submits the form.
          <button
            key="stop"
            type="button"
            className="primary"
            onClick={stopTracing}
            aria-keyshortcuts="Escape"
          >
            Stop waiting
          </button>
        ) : (
          <button key="start" type="submit" className="primary" aria-keyshortcuts="n">
            {isOpen && expression.trim() !== '' ? 'Trace the next such request' : 'Trace the next request'}
          </button>
        )}
        <LoadButton />
      </div>
      <details
        className="choices"
        open={isOpen}
        onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
      >
        <summary>Only certain requests, or several</summary>
        <div className="row">
          <label className="grow">
            Which request (CEL; empty for any)
            <input
              ref={input}
              type="text"
              className="mono"
              spellCheck={false}
              autoComplete="off"
              placeholder='request.path == "/mcp"'
              value={expression}
              aria-invalid={state.kind === 'refused'}
              aria-describedby={problem}
              onChange={(event) => setExpression(event.target.value)}
            />
          </label>
          <label>
            How many
            <input
              type="number"
              min={1}
              max={LIMITS.pageTraces}
              required
              value={count}
              onChange={(event) => setCount(event.target.value)}
            />
          </label>
          <label className="choice">
            <input type="checkbox" checked={again} onChange={(event) => setAgain(event.target.checked)} />{' '}
            repeatedly
          </label>
        </div>
      </details>
      <p id={problem} className="bad" hidden={state.kind !== 'refused' && state.kind !== 'lost'}>
        {'reason' in state ? `✗ ${visible(state.reason)}` : ''}
      </p>
    </form>
  );
}

/** Requests in the list; the Requests page has all of them. */
const RECENT = 20;

/** Requests that have ended: their fields can be opened, and the next one like them traced. */
function RecentRequests(): ReactNode {
  const { entries } = useRequests();
  const [opened, setOpened] = useState<Entry>();
  const search = useLocation().query.toString();
  // A link of the opened request leads to this same page.
  // biome-ignore lint/correctness/useExhaustiveDependencies: closes when the address changes.
  useEffect(() => setOpened(undefined), [search]);
  const shown = entries.slice(0, RECENT);
  const at = opened === undefined ? -1 : entries.findIndex(({ key }) => key === opened.key);
  if (shown.length === 0) return null;
  return (
    <section className="panel" aria-labelledby="recent">
      <h2 id="recent">Recent requests</h2>
      <p className="quiet">
        A trace has to be asked for before its request arrives. These have ended: open one for what the access
        log has of it, or trace the next one like it.
      </p>
      <ul className="plain-list recent">
        {shown.map((entry) => (
          <li key={entry.key}>
            <button type="button" className="plain" onClick={() => setOpened(entry)}>
              <span className="quiet">{clock(entry.at)}</span> <Status entry={entry} />{' '}
              <span>{[subjectOf(entry), lineOf(entry)].filter((part) => part !== '').join(' · ')}</span>{' '}
              <span className="quiet">
                {[callerOf(entry), problemOf(entry)].filter((part) => part !== '').join(' · ')}
              </span>
            </button>
            <Link to="/trace" query={{ expression: expressionLike(entry), start: '1' }}>
              Trace the next one like this
            </Link>
          </li>
        ))}
      </ul>
      {opened === undefined ? null : (
        <RequestDrawer
          entry={opened}
          close={() => setOpened(undefined)}
          newer={at > 0 ? () => setOpened(entries[at - 1]) : undefined}
          older={at !== -1 && at < entries.length - 1 ? () => setOpened(entries[at + 1]) : undefined}
        />
      )}
    </section>
  );
}

function LoadButton(): ReactNode {
  const id = useId();
  const read = (file: File | undefined): void => {
    if (file === undefined) return;
    if (file.size > LIMITS.traceKeptLength) {
      say({ text: `${file.name} is larger than what a page can show`, isBad: true });
      return;
    }
    file
      .text()
      .then((text) => load(text, file.name))
      .catch((error: Error) => say({ text: error.message, isBad: true }));
  };
  return (
    <label className="file" htmlFor={id}>
      Open a saved trace
      <input
        id={id}
        type="file"
        accept=".jsonl,.json,.txt"
        onChange={({ target }) => {
          read(target.files?.[0]);
          target.value = '';
        }}
      />
    </label>
  );
}

function WaitingFor({
  state,
  isFirst,
}: {
  readonly state: Extract<Waiting, { kind: 'waiting' }>;
  readonly isFirst: boolean;
}): ReactNode {
  const now = useSeconds();
  const waited = Math.max(0, Math.round((now - state.since) / 1000));
  const isSilent = now - state.alive > LIMITS.traceKeepaliveTimeout;
  const { data } = useOverview();
  const command = data === undefined ? undefined : firstRequest(data);
  return (
    <section className="panel" aria-label="Waiting">
      <p>
        <strong>◌ Waiting for a request.</strong> It is traced when it arrives; it is not delayed or changed.{' '}
        <span className="quiet">
          {Math.floor(waited / 60)}:{String(waited % 60).padStart(2, '0')}
        </span>{' '}
        {isSilent ? <span className="warn">! no data from the gateway for 5 s</span> : null}
      </p>
      {isFirst && command !== undefined ? (
        <>
          <p>Send one, for example:</p>
          <Command text={command} />
        </>
      ) : null}
    </section>
  );
}

function useSeconds(): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

function Nothing(): ReactNode {
  return (
    <section className="panel">
      <p>
        Nothing has been traced yet. Press <strong>Trace the next request</strong>, send one to the gateway,
        and see here which route and policies it matched, what their expressions read, what the backend
        answered, and who decided.
      </p>
      <p className="quiet">
        Traces stay on this page until it is closed. Saved ones open in the terminal too:{' '}
        <code>agctl proxy trace --file trace.jsonl</code>
      </p>
    </section>
  );
}

function TraceList({
  kept,
  shown,
}: {
  readonly kept: readonly KeptTrace[];
  readonly shown: KeptTrace | undefined;
}): ReactNode {
  return (
    <nav className="trace-list" aria-label="Traces of this visit">
      <ol className="plain-list">
        {kept.map((trace) => (
          <li key={trace.id}>
            <button
              type="button"
              className="plain"
              aria-current={trace === shown ? 'true' : undefined}
              onClick={() => choose(trace.id)}
            >
              <span className="quiet">{clock(trace.at)}</span>{' '}
              <span className={toneOf(trace.model)}>
                {isHidden(trace.model) ? '✗ ' : ''}
                {trace.model.verdict?.status ?? '…'}
              </span>{' '}
              {visible(requestLine(trace.model.state)) || visible(trace.file ?? 'request')}
            </button>
          </li>
        ))}
      </ol>
    </nav>
  );
}

/** It failed, but its status does not show that. */
const isHidden = ({ verdict }: TraceModel): boolean =>
  verdict?.error !== undefined && (verdict.status ?? 0) < 400;

function spoken(state: Waiting, newest: KeptTrace | undefined): string {
  if (state.kind === 'waiting' && newest?.state !== 'live') return 'Waiting for a request';
  if (newest === undefined || newest.state === 'live') return '';
  return visible(`${requestLine(newest.model.state)}: ${verdictText(newest.model)}`);
}
