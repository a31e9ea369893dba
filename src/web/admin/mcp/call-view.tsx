import type { ReactNode } from 'react';
import { CopyButton } from '../../shared/copy.tsx';
import { visible } from '../../shared/visible.ts';
import { CallTrace } from '../playground/call-trace.tsx';
import type { Message, Reply } from './client.ts';
import type { Call } from './use-calls.ts';

/** The result of a call: its response, the messages as sent, its trace. */
export function CallView({ call }: { readonly call: Call }): ReactNode {
  const { request, reply, error, took, trace, traceProblem } = call;
  return (
    <section aria-label="Answer">
      <div className="panel">
        <h2>Answer</h2>
        <p role="status">
          {took === undefined ? <span className="quiet">Waiting for the response …</span> : null}
          {error === '' ? null : <span className="bad">✗ {visible(error)}</span>}
          {reply === undefined ? null : <Verdict reply={reply} took={took ?? 0} />}
        </p>
        {reply === undefined ? null : <Content reply={reply} />}
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

function Verdict({ reply, took }: { readonly reply: Reply; readonly took: number }): ReactNode {
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
      {content.map((part: Part, index) => (
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

interface Part {
  readonly type?: unknown;
  readonly text?: unknown;
  readonly data?: unknown;
  readonly mimeType?: unknown;
}

/** Images and audio from servers are named, not displayed. */
function PartView({ part }: { readonly part: Part }): ReactNode {
  if (typeof part.text === 'string') return <pre>{visible(part.text.slice(0, SHOWN))}</pre>;
  if (typeof part.data === 'string')
    return (
      <p>
        {visible(String(part.type))}, {visible(String(part.mimeType))},{' '}
        {Math.floor((part.data.length * 3) / 4)} bytes
      </p>
    );
  return <Json value={part} />;
}

function Json({ value }: { readonly value: unknown }): ReactNode {
  return <pre>{visible(JSON.stringify(value, null, 2)).slice(0, SHOWN)}</pre>;
}
