import type { ReactNode } from 'react';
import { isRecord, textIn } from '../../../core/foreign.ts';
import { placeText, recordsOf } from '../../../core/trace/read-event.ts';
import { readable } from '../../../core/trace/request-line.ts';
import type { TraceStep } from '../../../core/trace-model.ts';
import { navigate } from '../../shared/router.tsx';
import { type Tab, Tabs } from '../../shared/tabs.tsx';
import { visible } from '../../shared/visible.ts';
import { passToCel } from '../cel/context.ts';

export type DetailView = 'why' | 'event' | 'state' | 'changes';

export const VIEWS: readonly (Tab<DetailView> & { readonly key: string })[] = [
  { name: 'why', label: 'Values', key: 'v' },
  { name: 'event', label: 'Event', key: 'e' },
  { name: 'state', label: 'State', key: 's' },
  { name: 'changes', label: 'Changes', key: 'd' },
];

/** Details of a step: its explanation, the event itself, and the variables after it. */
export function StepDetail({
  step,
  view,
  setView,
}: {
  readonly step: TraceStep;
  readonly view: DetailView;
  readonly setView: (view: DetailView) => void;
}): ReactNode {
  const { label, summary, place, state, message } = step;
  return (
    <section className="panel detail" aria-label={`Step ${step.number}`}>
      <h3>
        {visible(label)} <span className="quiet">step {step.number}</span>
      </h3>
      <p>{visible(summary)}</p>
      {place === undefined ? null : (
        <p>
          at <code>{visible(placeText(place))}</code>
        </p>
      )}
      {state === undefined ? null : (
        <button
          type="button"
          onClick={() => {
            passToCel(message.type === 'cel' ? textIn(message['expr']) : '', state);
            navigate('/cel');
          }}
        >
          Open in the CEL page
        </button>
      )}
      <Tabs label="Views of the step" tabs={VIEWS} chosen={view} choose={setView}>
        {view === 'why' ? <Why step={step} /> : null}
        {view === 'event' ? <Json value={readable(step.message)} /> : null}
        {view === 'state' ? (
          state === undefined ? (
            <p className="quiet">No variables are known at this step.</p>
          ) : (
            <Json value={readable(state)} />
          )
        ) : null}
        {view === 'changes' ? <Changes step={step} /> : null}
      </Tabs>
    </section>
  );
}

/** A longer text is cut, because it would block the page. The file contains all of it. */
const LONGEST = 200_000;

function Json({ value }: { readonly value: unknown }): ReactNode {
  const text = visible(JSON.stringify(value, null, 2) ?? '');
  return (
    <pre>
      {text.slice(0, LONGEST)}
      {text.length > LONGEST ? '\n… (the file that Save writes contains all of it)' : ''}
    </pre>
  );
}

function Why({ step }: { readonly step: TraceStep }): ReactNode {
  const { message } = step;
  switch (message.type) {
    case 'cel':
      return <Expression message={message} />;
    case 'authorizationResult':
      return <Rules rules={recordsOf(message['rules'])} />;
    case 'routeSelection':
      return <WhyNot message={message} />;
    case 'policySelection':
      return <Json value={message['effectivePolicy']} />;
    default: {
      const { type: _, requestState: __, ...rest } = readable(message);
      return Object.keys(rest).length === 0 ? (
        <p className="quiet">This step has no further values.</p>
      ) : (
        <Json value={rest} />
      );
    }
  }
}

type Message = TraceStep['message'];

/** The expression, the results of its subexpressions, and the variables that it read. */
function Expression({ message }: { readonly message: Message }): ReactNode {
  const expression = textIn(message['expr']);
  const parts = recordsOf(message['parts']);
  return (
    <>
      <pre>{visible(expression)}</pre>
      <table>
        <caption className="unseen">Results of the expression and its parts</caption>
        <thead>
          <tr>
            <th scope="col">Part</th>
            <th scope="col">Value</th>
          </tr>
        </thead>
        <tbody>
          {parts.map(({ start, end, value }) => (
            <tr key={`${start}-${end}`}>
              <th scope="row" className="mono">
                {visible(expression.slice(Number(start), Number(end)))}
              </th>
              <td className="mono">{valueText(value)}</td>
            </tr>
          ))}
          <tr>
            <th scope="row">the whole</th>
            <td className="mono">{valueText(message['result'])}</td>
          </tr>
        </tbody>
      </table>
      {isRecord(message['requestState']) && parts.length === 0 ? (
        <>
          <h4>Variables that it read</h4>
          <Json value={readable(message['requestState'])} />
        </>
      ) : null}
    </>
  );
}

function valueText(value: unknown): ReactNode {
  const error = isRecord(value) ? value['error'] : undefined;
  if (typeof error === 'string') return <span className="bad">✗ {visible(error)}</span>;
  return visible(JSON.stringify(value) ?? '');
}

function Rules({ rules }: { readonly rules: readonly Readonly<Record<string, unknown>>[] }): ReactNode {
  if (rules.length === 0) return <p className="quiet">There are no rules.</p>;
  return (
    <ol className="plain-list rules">
      {rules.map((rule, index) => {
        const { name, matched, mode, decided, problem } = rule;
        const { configLine, configColumn } = rule;
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: a rule is identified by its position.
          <li key={index} className={decided === true ? 'decided' : ''}>
            <span className={matched === true ? 'good' : 'warn'}>
              {matched === true ? '✓ true' : '✗ false'}
            </span>{' '}
            <span className="quiet">
              {textIn(mode)} rules[{index}]
            </span>{' '}
            <code>{visible(textIn(name))}</code>
            {typeof configLine === 'number' ? (
              <span className="quiet">
                {' '}
                line {configLine}:{String(configColumn ?? 1)}
              </span>
            ) : null}
            {decided === true ? <strong> decided</strong> : null}
            {typeof problem === 'string' ? <div className="bad">{visible(problem)}</div> : null}
          </li>
        );
      })}
    </ol>
  );
}

/** Why the other routes did not match. */
function WhyNot({ message }: { readonly message: Message }): ReactNode {
  const skipped = recordsOf(message['skippedRoutes']);
  const selected = message['selectedRoute'];
  return (
    <>
      <p>
        {typeof selected === 'string' ? (
          <>
            Selected: <code>{visible(selected)}</code>
          </>
        ) : (
          'No route matches this request.'
        )}
      </p>
      {skipped.length === 0 ? (
        <p className="quiet">There was no other route.</p>
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col">Route not taken</th>
              <th scope="col">Why not</th>
            </tr>
          </thead>
          <tbody>
            {skipped.map(({ route, reason }) => (
              <tr key={textIn(route)}>
                <th scope="row" className="mono">
                  {visible(textIn(route))}
                </th>
                <td>{visible(textIn(reason))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

const SIGNS = { added: '+', removed: '−', changed: '~' } as const;

function Changes({ step }: { readonly step: TraceStep }): ReactNode {
  if (step.state === undefined) return <p className="quiet">No variables are known at this step.</p>;
  const changes = changesBetween(step.before, step.state);
  if (changes.length === 0) return <p>This step changed no variable.</p>;
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Variable</th>
          <th scope="col">Before</th>
          <th scope="col">After</th>
        </tr>
      </thead>
      <tbody>
        {changes.map(({ path, kind, before, after }) => (
          <tr key={path}>
            <th scope="row" className="mono">
              <span title={kind}>{SIGNS[kind]}</span> {visible(path)}
            </th>
            <td className="mono">{before === '' ? '–' : visible(before)}</td>
            <td className="mono">{after === '' ? '–' : visible(after)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** One value that a step changed, by its path: `request.headers["x-user"]`. */
interface Change {
  readonly path: string;
  readonly kind: 'added' | 'removed' | 'changed';
  readonly before: string;
  readonly after: string;
}

type State = Readonly<Record<string, unknown>>;

/** Maximum number of changes that are displayed. */
const MOST = 500;

/** Compares two states value by value; bodies are compared in decoded form. */
function changesBetween(before: State | undefined, after: State | undefined): Change[] {
  const old = flattened(before);
  const now = flattened(after);
  const paths = [...new Set([...old.keys(), ...now.keys()])].sort();
  return paths
    .filter((path) => old.get(path) !== now.get(path))
    .slice(0, MOST)
    .map((path) => ({
      path,
      kind: !old.has(path) ? 'added' : now.has(path) ? 'changed' : 'removed',
      before: old.get(path) ?? '',
      after: now.get(path) ?? '',
    }));
}

function flattened(state: State | undefined): Map<string, string> {
  const values = new Map<string, string>();
  const walk = (value: unknown, path: string): void => {
    if (isRecord(value) && Object.keys(value).length > 0)
      for (const [name, member] of Object.entries(value)) walk(member, joined(path, name));
    else if (Array.isArray(value) && value.length > 0)
      for (const [index, item] of value.entries()) walk(item, `${path}[${index}]`);
    else values.set(path, JSON.stringify(value) ?? '');
  };
  if (state !== undefined) walk(readable(state), '');
  return values;
}

function joined(path: string, name: string): string {
  if (!/^[A-Za-z_]\w*$/.test(name)) return `${path}[${JSON.stringify(name)}]`;
  return path === '' ? name : `${path}.${name}`;
}
