import { type ReactNode, useEffect, useState } from 'react';
import { isRecord, parseJson } from '../../../core/foreign.ts';
import type { Answer, JudgedCaller, Judgment, ToolCallers } from '../../../core/tool-callers.ts';
import { ask } from '../../shared/api.ts';
import { Failure } from '../../shared/form.tsx';
import { counted } from '../../shared/format.ts';
import { visible } from '../../shared/visible.ts';
import type { Endpoint } from '../playground/endpoints.ts';

/** A tool behind an endpoint. */
export interface ToolOf {
  readonly endpoint: Pick<Endpoint, 'gateway' | 'routeKey'>;
  readonly target: string;
  /** Its name at the target. */
  readonly own: string;
}

/** Which callers may call a tool and see it in their lists, as the gateway judges them. */
export function Callers({ endpoint: { gateway, routeKey }, target, own }: ToolOf): ReactNode {
  const [text, setText] = useState('');
  const [claims, setClaims] = useState<Readonly<Record<string, unknown>>>();
  const [data, setData] = useState<ToolCallers>();
  const [problem, setProblem] = useState('');
  useEffect(() => {
    const gone = new AbortController();
    ask<ToolCallers>('/api/mcp/callers', {
      method: 'POST',
      body: { gateway, route: routeKey, target, tool: own, claims },
      signal: gone.signal,
    }).then(
      (answer) => {
        setData(answer);
        setProblem('');
      },
      (error: Error) => {
        if (!gone.signal.aborted) setProblem(error.message);
      },
    );
    return () => gone.abort();
  }, [gateway, routeKey, target, own, claims]);
  const judgeClaims = (): void => {
    try {
      const value = text.trim() === '' ? undefined : parseJson(text);
      if (value !== undefined && !isRecord(value)) throw new Error('expected a JSON object');
      setClaims(value);
      setProblem('');
    } catch {
      setProblem('The claims are not a JSON object, such as {"sub": "alice"}.');
    }
  };
  return (
    <>
      {data === undefined ? null : <CallerTable data={data} />}
      {/* Not a form: it is inside the form of the tool. */}
      <div className="claims">
        <label>
          Claims of a token, as JSON
          <textarea
            rows={2}
            spellCheck={false}
            value={text}
            placeholder='{"sub": "alice"}'
            onChange={(event) => setText(event.target.value)}
          />
        </label>
        <button type="button" onClick={judgeClaims}>
          Judge these claims
        </button>
      </div>
      <Failure text={problem} />
    </>
  );
}

function CallerTable({ data: { callers, omitted, problem } }: { readonly data: ToolCallers }): ReactNode {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard.
    <section className="callers scroll" aria-label="Callers" tabIndex={0}>
      <table className="cards">
        <thead>
          <tr>
            {['Caller', 'May call it', 'Lists', 'Because'].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {callers.map((caller, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: keys may have equal names.
            <tr key={at}>
              <th scope="row">{NAMES[caller.kind](caller)}</th>
              <td className="short" data-name="May call it">
                <Said {...caller.calls} words={CALLS} />
              </td>
              <td className="short" data-name="Lists">
                <Said {...caller.lists} words={LISTS} />
              </td>
              <td data-name="Because">{visible(reasonOf(caller))}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {omitted === 0 ? null : <p className="warn">! {counted(omitted, 'further key')} not judged.</p>}
      {problem === undefined ? null : <p className="bad">✗ Virtual keys are missing: {visible(problem)}</p>}
    </section>
  );
}

const NAMES: Readonly<Record<JudgedCaller['kind'], (caller: JudgedCaller) => string>> = {
  anonymous: () => 'without credentials',
  claims: () => 'these claims',
  key: ({ name }) => `key ${visible(name.replace(/^key (?=[0-9a-f]{8}$)/, ''))}`,
};

type Words = Readonly<Record<Answer, string>>;
const CALLS: Words = { yes: '✓ yes', no: '✗ no', depends: '? depends on the call' };
const LISTS: Words = { yes: '✓ listed', no: '✗ hidden', depends: '? depends on the call' };
const TONES: Words = { yes: 'good', no: 'bad', depends: 'warn' };

function Said({ answer, words }: Judgment & { readonly words: Words }): ReactNode {
  return <span className={TONES[answer]}>{words[answer]}</span>;
}

/** That of lists only where it says something else. */
function reasonOf({ calls, lists }: JudgedCaller): string {
  return calls.answer === lists.answer ? calls.because : `${calls.because}; for lists, ${lists.because}`;
}
