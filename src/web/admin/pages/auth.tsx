import { type ReactNode, useEffect, useRef, useState } from 'react';
import { time } from '../../shared/format.ts';
import { Problem } from '../../shared/problem.tsx';
import { visible } from '../../shared/visible.ts';
import { type Jwt, readJwt, remarksOn } from '../auth/jwt.ts';
import { type Tried, tryToken } from '../auth/try-token.ts';
import { useOverview } from '../model/overview.ts';
import { CallTrace } from '../playground/call-trace.tsx';
import { type Endpoint, endpointsOf } from '../playground/endpoints.ts';
import { TokenField, useToken } from '../playground/token.tsx';
import type { KeptTrace } from '../trace/traces.ts';
import '../playground/playground.css';

/** Displays the content of a token, and the response of each route to it. */
export function Auth(): ReactNode {
  const token = useToken();
  const jwt = readJwt(token);
  const { data, error, reload } = useOverview();
  return (
    <>
      <div className="panel">
        <div className="row">
          <TokenField />
        </div>
        {token === '' ? (
          <p className="quiet">
            A JWT is decoded here, in the page; nothing is sent until you request it. The playgrounds use the
            same token.
          </p>
        ) : null}
        {token !== '' && jwt === undefined ? (
          <p className="quiet">This is not a JWT. You can still try it, for example as an API key.</p>
        ) : null}
        {jwt === undefined ? null : <Remarks jwt={jwt} />}
      </div>
      {data === undefined && error !== undefined ? (
        <Problem title="The gateway did not respond" error={error} retry={reload} />
      ) : null}
      <div className={jwt === undefined ? undefined : 'two'}>
        {data === undefined ? null : (
          <Routes endpoints={[...endpointsOf(data, 'mcp'), ...endpointsOf(data, 'llm')]} token={token} />
        )}
        {jwt === undefined ? null : <Claims jwt={jwt} />}
      </div>
    </>
  );
}

/** Notable properties of the token. */
function Remarks({ jwt }: { readonly jwt: Jwt }): ReactNode {
  return (
    <ul className="plain-list" aria-label="Notable properties">
      {remarksOn(jwt, Date.now()).map((remark) => (
        <li key={remark} className="warn">
          ! {remark}
        </li>
      ))}
    </ul>
  );
}

const TIMES = new Set(['exp', 'iat', 'nbf', 'auth_time']);

function Claims({ jwt }: { readonly jwt: Jwt }): ReactNode {
  return (
    <section className="panel" aria-labelledby="claims">
      <h2 id="claims">Content</h2>
      <table className="fields">
        <caption className="unseen">Header and claims of the token</caption>
        <tbody>
          {[...named(jwt.header, 'header.'), ...named(jwt.claims, '')].map(([name, value, at]) => (
            <tr key={name}>
              <th scope="row">{visible(name)}</th>
              <td className="mono">
                {visible(value)} {at === undefined ? null : <span className="quiet">{at}</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function named(
  values: Readonly<Record<string, unknown>>,
  prefix: string,
): (readonly [name: string, value: string, at: string | undefined])[] {
  return Object.entries(values).map(([name, value]) => [
    `${prefix}${name}`,
    typeof value === 'string' ? value : JSON.stringify(value),
    TIMES.has(name) && typeof value === 'number' && Math.abs(value) < 1e11
      ? time(new Date(value * 1000).toISOString())
      : undefined,
  ]);
}

/** The result of a try on a route. */
interface Outcome {
  readonly tried?: Tried;
  readonly problem?: string;
  readonly trace?: KeptTrace;
}

function Routes({
  endpoints,
  token,
}: {
  readonly endpoints: readonly Endpoint[];
  readonly token: string;
}): ReactNode {
  const { outcomes, isRunning, run } = useTries(endpoints, token);
  if (endpoints.length === 0)
    return <p className="panel">This gateway has no route to MCP servers or models.</p>;
  return (
    <section className="panel" aria-labelledby="routes">
      <h2 id="routes">Response of each route</h2>
      <div className="row bar">
        <button type="button" className="primary" aria-disabled={isRunning} onClick={run}>
          {token === '' ? 'Try without a token' : 'Try it'}
        </button>
        <span className="quiet">
          The request passes all policies of a route. It reaches no MCP server and no model.
        </span>
      </div>
      <ul className="routes">
        {endpoints.map(({ key, name, policies }) => (
          <li key={key}>
            <div className="route">
              <strong>{visible(name)}</strong> <Verdict outcome={outcomes.get(key)} />
            </div>
            {policies.length === 0 ? (
              <span className="quiet">no policies: everyone can use it</span>
            ) : (
              <ol className="chips" aria-label="Policies in the order of evaluation">
                {policies.map((policy) => (
                  <li key={policy}>{policy}</li>
                ))}
              </ol>
            )}
            {outcomes.get(key)?.trace === undefined ? null : (
              <CallTrace trace={outcomes.get(key)?.trace} problem="" isOpen={false} />
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

const MARKS = { accepted: '✓', rejected: '✗', unclear: '!' } as const;
const TONES = { accepted: 'good', rejected: 'bad', unclear: 'warn' } as const;

function Verdict({ outcome }: { readonly outcome: Outcome | undefined }): ReactNode {
  const { tried, problem } = outcome ?? {};
  if (problem !== undefined) return <span className="bad">✗ {visible(problem)}</span>;
  if (tried === undefined) return null;
  const { verdict, status, reason } = tried;
  return (
    <span className={TONES[verdict]}>
      {MARKS[verdict]} {verdict === 'unclear' ? 'answered' : verdict}
      {verdict === 'accepted' ? '' : ` ${status}`}
      {reason === '' ? '' : `: ${visible(reason)}`}
    </span>
  );
}

function useTries(
  endpoints: readonly Endpoint[],
  token: string,
): {
  readonly outcomes: ReadonlyMap<string, Outcome>;
  readonly isRunning: boolean;
  readonly run: () => void;
} {
  const [outcomes, setOutcomes] = useState<ReadonlyMap<string, Outcome>>(new Map());
  const [isRunning, setRunning] = useState(false);
  const running = useRef<AbortController | undefined>(undefined);
  // Results for another token do not apply to this one.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the effect depends on the token only.
  useEffect(() => {
    setOutcomes(new Map());
    return () => running.current?.abort();
  }, [token]);
  const run = (): void => {
    if (isRunning) return;
    const own = new AbortController();
    running.current = own;
    const note = (key: string, part: Outcome): void => {
      if (!own.signal.aborted) setOutcomes((all) => new Map(all).set(key, { ...all.get(key), ...part }));
    };
    setOutcomes(new Map());
    setRunning(true);
    const tryAll = async (): Promise<void> => {
      for (const endpoint of endpoints) {
        if (own.signal.aborted) break;
        const { key } = endpoint;
        await tryToken(endpoint, token, (trace) => note(key, { trace }), own.signal).then(
          (tried) => note(key, { tried }),
          (error: Error) => note(key, { problem: error.message }),
        );
      }
      setRunning(false);
    };
    void tryAll();
  };
  return { outcomes, isRunning, run };
}
