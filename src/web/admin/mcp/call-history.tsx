import type { ReactNode } from 'react';
import { visible } from '../../shared/visible.ts';
import { type Call, Verdict } from './call.tsx';

/** The calls of a session, to read an answer again or to send the same message again. */
export function CallHistory({
  calls,
  shown,
  isRunning,
  show,
  send,
}: {
  readonly calls: readonly Call[];
  readonly shown: number | undefined;
  readonly isRunning: boolean;
  readonly show: (number: number) => void;
  readonly send: (request: unknown) => void;
}): ReactNode {
  if (calls.length === 0) return null;
  return (
    <section className="panel" aria-labelledby="calls">
      <h2 id="calls">Calls in this session</h2>
      <ul className="plain-list calls">
        {calls.map((call) => {
          const name = nameOf(call.request);
          return (
            <li key={call.number}>
              <button
                type="button"
                aria-current={call.number === shown ? 'true' : undefined}
                onClick={() => show(call.number)}
              >
                <span className="quiet">{call.number}.</span> {visible(name)}{' '}
                <small className="quiet">{visible(argumentsOf(call.request))}</small>
              </button>
              <span className="outcome">
                {call.took === undefined ? <span className="quiet">running</span> : null}
                {call.error === '' ? null : <span className="bad">✗ no answer</span>}
                {call.reply === undefined ? null : <Verdict reply={call.reply} took={call.took ?? 0} />}
              </span>
              <button
                type="button"
                aria-label={`Repeat call ${call.number}, ${visible(name)}`}
                disabled={isRunning}
                onClick={() => send(call.request)}
              >
                Repeat
              </button>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

interface Request {
  readonly method?: unknown;
  readonly params?: {
    readonly name?: unknown;
    readonly uri?: unknown;
    readonly arguments?: unknown;
  };
}

/** What is called: a tool, a prompt, a resource, or else the method. */
function nameOf(request: unknown): string {
  const { method, params } = (request ?? {}) as Request;
  const name = params?.name ?? params?.uri ?? method;
  return typeof name === 'string' ? name : 'message';
}

/** Characters of the arguments in the list; the answer's view has all of them. */
const SHOWN_ARGUMENTS = 200;

function argumentsOf(request: unknown): string {
  const values = ((request ?? {}) as Request).params?.arguments;
  return values === undefined ? '' : JSON.stringify(values).slice(0, SHOWN_ARGUMENTS);
}
