import { type ReactNode, useEffect, useRef, useState } from 'react';
import { messageOf } from '../../../core/errors.ts';
import { elementsOf, membersOf, shownValue } from '../../../core/foreign.ts';
import { CopyButton } from '../../shared/copy.tsx';
import { visible } from '../../shared/visible.ts';
import { CallTrace, type Watched, watchRequest } from '../playground/call-trace.tsx';
import type { KeptTrace } from '../trace/traces.ts';
import type { McpSession, Message, Reply } from './client.ts';

/** One message that was sent, and its response. */
export interface Call {
  /** Counted from 1 over the calls of a session. */
  readonly number: number;
  readonly request: unknown;
  readonly reply: Reply | undefined;
  readonly error: string;
  /** Time until the response in ms. */
  readonly took: number | undefined;
  readonly trace: KeptTrace | undefined;
  readonly traceProblem: string;
}

/** Calls that are kept for the list, with their answers. Older ones are in the requests of the gateway. */
const KEPT_CALLS = 20;

/** The calls of a session, the newest first, and the one displayed. */
export function useCalls(session: McpSession | undefined): {
  readonly calls: readonly Call[];
  readonly call: Call | undefined;
  readonly isRunning: boolean;
  readonly show: (number: number) => void;
  readonly send: (request: unknown) => void;
  readonly stop: () => void;
} {
  const [calls, setCalls] = useState<readonly Call[]>([]);
  const [shown, setShown] = useState(0);
  const running = useRef<AbortController | undefined>(undefined);
  const watched = useRef<Watched | undefined>(undefined);
  const sent = useRef(0);
  const stop = (): void => running.current?.abort();
  useEffect(
    () => () => {
      running.current?.abort();
      watched.current?.stop();
    },
    [],
  );
  const send = (request: unknown): void => {
    if (session === undefined) return;
    stop();
    watched.current?.stop();
    const own = new AbortController();
    running.current = own;
    sent.current += 1;
    const number = sent.current;
    const change = (part: Partial<Call>): void =>
      setCalls((all) => all.map((each) => (each.number === number ? { ...each, ...part } : each)));
    const started: Call = {
      number,
      request,
      reply: undefined,
      error: '',
      took: undefined,
      trace: undefined,
      traceProblem: '',
    };
    setCalls((all) => [started, ...all].slice(0, KEPT_CALLS));
    setShown(number);
    void run(session, request, own.signal, change, watched);
  };
  return {
    calls,
    call: calls.find(({ number }) => number === shown),
    isRunning: calls[0] !== undefined && calls[0].took === undefined,
    show: setShown,
    send,
    stop,
  };
}

async function run(
  session: McpSession,
  request: unknown,
  signal: AbortSignal,
  change: (part: Partial<Call>) => void,
  watched: { current: Watched | undefined },
): Promise<void> {
  const watch = await watchRequest(
    (trace) => change({ trace }),
    (traceProblem) => change({ traceProblem }),
  );
  // Another call may have replaced this one while its trace was set up.
  if (signal.aborted) watch.stop();
  else watched.current = watch;
  const started = performance.now();
  const took = (): number => Math.round(performance.now() - started);
  try {
    const reply = await session.send(request, watch.headers, signal);
    change({ reply, took: took() });
  } catch (error) {
    watch.stop();
    change({ error: signal.aborted ? 'Stopped.' : messageOf(error), took: took() });
  }
}

/** The result of a call: its response, the messages as sent, its trace. */
export function CallView({ call }: { readonly call: Call }): ReactNode {
  const { request, reply, error, took, trace, traceProblem } = call;
  const box = useRef<HTMLElement>(null);
  // Where there is no room beside the form, the answer is below it.
  // biome-ignore lint/correctness/useExhaustiveDependencies: a call, and its answer, may be out of sight.
  useEffect(() => {
    box.current?.scrollIntoView({ block: 'nearest' });
  }, [request, reply, error]);
  return (
    <section ref={box} className="answer" aria-label="Answer">
      <div className="panel">
        <h2>Answer</h2>
        <p role="status">
          {took === undefined ? <span className="quiet">Waiting for the response …</span> : null}
          {error === '' ? null : <span className="bad">✗ {visible(error)}</span>}
          {reply === undefined ? null : <Verdict reply={reply} took={took ?? 0} />}
        </p>
        {reply === undefined ? null : (
          <>
            <Content reply={reply} />
            <CopyButton text={() => answerText(reply)}>Copy answer</CopyButton>
          </>
        )}
        <details>
          <summary>Messages</summary>
          <h3>Sent</h3>
          <pre>{visible(JSON.stringify(request, null, 2))}</pre>
          {reply === undefined ? null : (
            <>
              <h3>Received</h3>
              <pre>{visible(reply.text === '' ? '(nothing)' : reply.text.slice(0, SHOWN))}</pre>
              <CopyButton text={reply.text}>Copy</CopyButton>
            </>
          )}
        </details>
      </div>
      <CallTrace trace={trace} problem={traceProblem} />
    </section>
  );
}

/** Characters that are displayed; copying includes all of them. */
const SHOWN = 200_000;

const answerOf = ({ messages }: Reply): Message | undefined =>
  messages.find(({ result, error }) => result !== undefined || error !== undefined);

/** What a copy of the answer contains: its texts, or all of it as JSON. */
function answerText(reply: Reply): string {
  const { result, error } = answerOf(reply) ?? {};
  const texts = elementsOf(result?.['content']).map((part) => membersOf(part)['text']);
  if (texts.length > 0 && texts.every((text) => typeof text === 'string')) return texts.join('\n');
  const value = result ?? error;
  return value === undefined ? reply.text : JSON.stringify(value, null, 2);
}

/** Whether a call succeeded, and how long it took. */
export function Verdict({ reply, took }: { readonly reply: Reply; readonly took: number }): ReactNode {
  const answer = answerOf(reply);
  const isBad = reply.status >= 400 || answer?.error !== undefined;
  const isFailed = answer?.result?.['isError'] === true;
  return (
    <>
      {isBad ? <span className="bad">✗ {reply.status}</span> : null}
      {!isBad && isFailed ? <span className="warn">! The tool reported an error</span> : null}
      {isBad || isFailed ? null : <span className="good">✓ {reply.status}</span>}{' '}
      <span className="quiet">{took} ms</span>
    </>
  );
}

function Content({ reply }: { readonly reply: Reply }): ReactNode {
  const answer = answerOf(reply);
  if (answer?.error !== undefined)
    return (
      <p className="bad">
        {answer.error.code}: {visible(answer.error.message)}
      </p>
    );
  if (answer?.result === undefined)
    return reply.text === '' ? null : <pre>{visible(reply.text.slice(0, SHOWN))}</pre>;
  const { content, structuredContent, ...rest } = answer.result;
  if (!Array.isArray(content)) return <Json value={answer.result} />;
  return (
    <>
      {content.map((part: unknown, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a part is identified by its position.
        <PartView key={index} part={part} />
      ))}
      {structuredContent === undefined ? null : (
        <>
          <h3>Structured content</h3>
          <Json value={structuredContent} />
        </>
      )}
      {Object.keys(rest).length === 0 ? null : <Json value={rest} />}
    </>
  );
}

/** Images and audio from servers are named, not displayed. */
function PartView({ part }: { readonly part: unknown }): ReactNode {
  const { text, data, type, mimeType } = membersOf(part);
  if (typeof text === 'string') return <pre>{visible(text.slice(0, SHOWN))}</pre>;
  if (typeof data === 'string')
    return (
      <p>
        {visible(shownValue(type))}, {visible(shownValue(mimeType))}, {Math.floor((data.length * 3) / 4)}{' '}
        bytes
      </p>
    );
  return <Json value={part} />;
}

function Json({ value }: { readonly value: unknown }): ReactNode {
  return <pre>{visible(JSON.stringify(value, null, 2)).slice(0, SHOWN)}</pre>;
}
