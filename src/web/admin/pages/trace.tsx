import { type FormEvent, type ReactNode, useEffect, useId, useState } from 'react';
import { LIMITS } from '../../../core/limits.ts';
import { requestLine } from '../../../core/trace/request-line.ts';
import { verdictText } from '../../../core/trace/verdict.ts';
import type { TraceModel } from '../../../core/trace-model.ts';
import { clock } from '../../shared/format.ts';
import { LiveText } from '../../shared/live-text.tsx';
import { Command } from '../../shared/problem.tsx';
import { useLocation } from '../../shared/router.tsx';
import { useShortcuts } from '../../shared/shortcuts.tsx';
import { say } from '../../shared/toasts.tsx';
import { visible } from '../../shared/visible.ts';
import { firstRequest, useOverview } from '../model/overview.ts';
import { TraceView, toneOf } from '../trace/trace-view.tsx';
import { type ArmState, arm, choose, disarm, type KeptTrace, load, useTraces } from '../trace/traces.ts';

/** Arms a trace, then records how a request is processed. */
export function Trace(): ReactNode {
  const { kept, arm: state, chosen } = useTraces();
  const shown = kept.find(({ id }) => id === chosen) ?? kept[0];
  return (
    <>
      <ArmForm state={state} />
      <LiveText text={spoken(state, kept[0])} />
      {state.kind === 'waiting' && kept[0]?.state !== 'live' ? (
        <Waiting state={state} isFirst={kept.length === 0} />
      ) : null}
      {kept.length === 0 && state.kind === 'idle' ? <Nothing /> : null}
      <div className={kept.length > 1 ? 'trace-page' : ''}>
        {kept.length > 1 ? <TraceList kept={kept} shown={shown} /> : null}
        {shown === undefined ? null : <TraceView key={shown.id} trace={shown} />}
      </div>
    </>
  );
}

function ArmForm({ state }: { readonly state: ArmState }): ReactNode {
  const asked = useLocation().query.get('expression') ?? '';
  const [expression, setExpression] = useState(asked);
  const [count, setCount] = useState('1');
  const [again, setAgain] = useState(false);
  const problem = useId();
  const isOn = state.kind === 'connecting' || state.kind === 'waiting';
  const begin = (): void => void arm({ expression, count: Math.max(1, Math.trunc(Number(count))), again });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    begin();
  };
  useShortcuts([
    { keys: 'n', what: 'trace the next request', run: begin },
    { keys: 'Escape', what: 'stop waiting', run: disarm },
  ]);
  return (
    <form className="panel" onSubmit={submit}>
      <div className="row">
        <label className="grow">
          Which request (CEL; empty for any)
          <input
            type="text"
            data-filter
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
        <button type="submit" className="primary" aria-keyshortcuts="n">
          {isOn ? 'Arm again' : 'Arm'}
        </button>
        {isOn ? (
          <button type="button" onClick={disarm} aria-keyshortcuts="Escape">
            Stop
          </button>
        ) : null}
        <LoadButton />
      </div>
      <p id={problem} className="bad" hidden={state.kind !== 'refused' && state.kind !== 'lost'}>
        {'reason' in state ? `✗ ${visible(state.reason)}` : ''}
      </p>
    </form>
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

function Waiting({
  state,
  isFirst,
}: {
  readonly state: Extract<ArmState, { kind: 'waiting' }>;
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
        <strong>◌ Armed.</strong> The next such request is traced; others are not affected.{' '}
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
        Nothing has been traced yet. <strong>Arm</strong>, send a request to the gateway, and see here which
        route and policies it matched, what their expressions read, what the backend answered, and who
        decided.
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

function spoken(state: ArmState, newest: KeptTrace | undefined): string {
  if (state.kind === 'waiting' && newest?.state !== 'live') return 'Armed: waiting for a request';
  if (newest === undefined || newest.state === 'live') return '';
  return visible(`${requestLine(newest.model.state)}: ${verdictText(newest.model)}`);
}
