import { type FormEvent, type KeyboardEvent, type ReactNode, useId, useRef, useState } from 'react';
import { messageOf } from '../../../core/errors.ts';
import { parseJson } from '../../../core/foreign.ts';
import { CopyButton } from '../../shared/copy.tsx';
import { visible } from '../../shared/visible.ts';
import { WithCode } from '../../shared/with-code.tsx';
import { takeInitialContent } from '../cel/context.ts';
import { evaluate, type Outcome, yamlQuoted } from '../cel/evaluate.ts';
import { EXAMPLES, SAMPLES } from '../cel/samples.ts';
import '../cel/cel.css';

const pretty = (value: unknown): string => JSON.stringify(value, null, 2);

/** Try an expression before it goes into the configuration. */
export function Cel(): ReactNode {
  const [begin] = useState(takeInitialContent);
  const [expression, setExpression] = useState(begin?.expression || (EXAMPLES[0]?.expression ?? ''));
  const [context, setContext] = useState(() => pretty(begin?.state ?? SAMPLES[0]?.state));
  const { outcome, isRunning, run } = useEvaluation();
  const field = useRef<HTMLTextAreaElement>(null);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    run(expression, context);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    run(expression, context);
  };
  return (
    <form className="cel" onSubmit={submit} onKeyDown={onKeyDown}>
      <div className="cel-main">
        <div>
          <label>
            Expression
            <textarea
              ref={field}
              className="mono"
              rows={3}
              spellCheck={false}
              autoComplete="off"
              value={expression}
              aria-describedby="cel-outcome"
              onChange={(event) => setExpression(event.target.value)}
            />
          </label>
          <div className="row bar">
            <button type="submit" className="primary" aria-keyshortcuts="Control+Enter Meta+Enter">
              Evaluate
            </button>
            <CopyButton text={() => yamlQuoted(expression)}>Copy for YAML</CopyButton>
            <span className="quiet">
              <kbd>Ctrl</kbd>
              <kbd>Enter</kbd>
            </span>
          </div>
          <Result
            outcome={outcome}
            isRunning={isRunning}
            showPlace={(start, end) => {
              field.current?.focus();
              field.current?.setSelectionRange(start, end);
            }}
          />
        </div>
        <ContextField
          value={context}
          change={setContext}
          recorded={begin === undefined ? undefined : pretty(begin.state)}
        />
      </div>
      <Gallery
        choose={(example, sample) => {
          const state = pretty(SAMPLES[sample]?.state);
          setExpression(example);
          setContext(state);
          run(example, state);
        }}
      />
    </form>
  );
}

/** The outcome, with the expression that it belongs to. */
type Shown = (Outcome & { readonly expression: string }) | undefined;

function useEvaluation(): {
  readonly outcome: Shown;
  readonly isRunning: boolean;
  readonly run: (expression: string, context: string) => void;
} {
  const [outcome, setOutcome] = useState<Shown>();
  const [isRunning, setRunning] = useState(false);
  const running = useRef<AbortController | undefined>(undefined);
  const run = (expression: string, context: string): void => {
    running.current?.abort();
    const own = new AbortController();
    running.current = own;
    const show = (next: Outcome): void => {
      if (running.current !== own) return;
      setRunning(false);
      setOutcome({ ...next, expression });
    };
    let state: unknown;
    try {
      state = parseJson(context.trim() === '' ? '{}' : context);
    } catch (error) {
      show({ kind: 'error', message: `the variables are not valid JSON: ${messageOf(error)}` });
      return;
    }
    setRunning(true);
    evaluate(expression, state, own.signal).then(show, (error: Error) =>
      show({ kind: 'error', message: error.message }),
    );
  };
  return { outcome, isRunning, run };
}

function Result({
  outcome,
  isRunning,
  showPlace,
}: {
  readonly outcome: Shown;
  readonly isRunning: boolean;
  readonly showPlace: (start: number, end: number) => void;
}): ReactNode {
  return (
    <section className="panel" aria-label="Result">
      <div id="cel-outcome" role="status">
        {outcome === undefined ? (
          <p className="quiet">{isRunning ? 'Evaluating …' : 'Nothing has been evaluated yet.'}</p>
        ) : outcome.kind === 'result' ? (
          <>
            <p>
              <span className="good">✓</span> {typeName(outcome.value)}
            </p>
            <pre>{visible(pretty(outcome.value) ?? 'null')}</pre>
          </>
        ) : (
          <Failure outcome={outcome} showPlace={showPlace} />
        )}
      </div>
    </section>
  );
}

function Failure({
  outcome,
  showPlace,
}: {
  readonly outcome: Extract<Outcome, { kind: 'error' }> & { readonly expression: string };
  readonly showPlace: (start: number, end: number) => void;
}): ReactNode {
  const { expression, message, code, label, help, start, end } = outcome;
  return (
    <>
      <p className="bad">
        ✗ {code === undefined ? '' : `${code}: `}
        <WithCode text={message} />
      </p>
      {start === undefined || end === undefined ? null : (
        <>
          <pre>
            {visible(expression.slice(0, start))}
            <mark>{visible(expression.slice(start, end)) || '␣'}</mark>
            {visible(expression.slice(end))}
          </pre>
          <button type="button" onClick={() => showPlace(start, end)}>
            Go to the position
          </button>
        </>
      )}
      {label === undefined ? null : (
        <p>
          <WithCode text={label} />
        </p>
      )}
      {help === undefined ? null : (
        <p>
          <WithCode text={help} />
        </p>
      )}
    </>
  );
}

function typeName(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return `list of ${value.length}`;
  if (typeof value === 'boolean') return `bool ${value}`;
  return typeof value === 'object' ? 'map' : typeof value;
}

function ContextField({
  value,
  change,
  recorded,
}: {
  readonly value: string;
  readonly change: (value: string) => void;
  readonly recorded: string | undefined;
}): ReactNode {
  const id = useId();
  return (
    <div className="cel-variables">
      <div className="row">
        <label>
          Variables from
          <select
            value=""
            onChange={({ target }) => {
              const next =
                target.value === 'recorded' ? recorded : pretty(SAMPLES[Number(target.value)]?.state);
              if (next !== undefined) change(next);
            }}
          >
            <option value="" disabled>
              Choose …
            </option>
            {recorded === undefined ? null : <option value="recorded">The step of the trace</option>}
            {SAMPLES.map(({ name }, index) => (
              <option key={name} value={index}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </div>
      <label htmlFor={id}>Variables, JSON</label>
      <textarea
        id={id}
        className="mono"
        rows={16}
        spellCheck={false}
        autoComplete="off"
        value={value}
        onChange={(event) => change(event.target.value)}
      />
      <p className="quiet">
        For those of a real request: record it on the Trace page, select a step, and open it in the CEL page.
      </p>
    </div>
  );
}

function Gallery({ choose }: { readonly choose: (expression: string, sample: number) => void }): ReactNode {
  return (
    <section className="panel" aria-labelledby="examples">
      <h2 id="examples">Examples</h2>
      <ul className="plain-list">
        {EXAMPLES.map(({ what, expression, sample }) => (
          <li key={what}>
            <button type="button" className="plain example" onClick={() => choose(expression, sample)}>
              {what}
              <code>{expression}</code>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
