import type { ReactNode } from 'react';
import { isRecord, membersOf, textIn } from '../../../core/foreign.ts';
import type { TraceModel, TraceStep } from '../../../core/trace-model.ts';
import { visible } from '../../shared/visible.ts';
import { WithCode } from '../../shared/with-code.tsx';
import type { ChatState } from './conversation.tsx';

/** Tokens, price, times, and the effects of the gateway on the call. */
export function Outcome({ label, state }: { readonly label: string; readonly state: ChatState }): ReactNode {
  const { answer, trace } = state;
  const acted = trace === undefined ? [] : effectsOf(trace.model);
  return (
    <section className="panel" aria-label={label}>
      {answer === undefined ? null : <Facts answer={answer} model={trace?.model} />}
      <h2>What the gateway did</h2>
      {acted.length === 0 ? (
        <p className="quiet">No policy, transformation or guardrail had an effect.</p>
      ) : (
        <ul className="plain-list">
          {acted.map(({ what, where, tone }, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: an effect keeps its position.
            <li key={index}>
              <span className={tone}>{SIGNS[tone]}</span> <WithCode text={what} />{' '}
              <code className="quiet">{visible(where)}</code>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

const SIGNS = { good: '✓', warn: '!', bad: '✗' } as const;

function Facts({
  answer,
  model,
}: {
  readonly answer: NonNullable<ChatState['answer']>;
  readonly model: TraceModel | undefined;
}): ReactNode {
  const { usage, firstAfter, took, finish } = answer;
  const cost = model === undefined ? undefined : costOf(model);
  const facts: readonly (readonly [string, string])[] = [
    ['Model', visible(answer.model ?? '?')],
    ['Tokens in', usage === undefined ? 'not reported' : String(usage.input)],
    ['Tokens out', usage === undefined ? 'not reported' : String(usage.output)],
    ['Cost', cost === undefined ? 'no price known' : `$${Number(cost.toPrecision(4))}`],
    ['Time to first text', firstAfter === undefined ? '–' : `${firstAfter} ms`],
    ['Total time', `${took} ms`],
    ['Ended by', visible(finish ?? '?')],
  ];
  return (
    <dl className="facts dense">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** An effect of the gateway on an LLM call, described in words. */
interface Effect {
  readonly what: string;
  readonly where: string;
  readonly tone: 'good' | 'warn' | 'bad';
}

/** Effects of transformations, guardrails and policies, in order. */
function effectsOf({ steps }: TraceModel): Effect[] {
  return steps.flatMap((step): Effect[] => {
    const { message, severity } = step;
    const tone = severity === 'error' ? 'bad' : severity === 'warn' ? 'warn' : 'good';
    const what = describe(step);
    const where = step.place?.configPath ?? textIn(message['configPath']);
    return what === undefined ? [] : [{ what, where, tone }];
  });
}

function describe({ message, summary, isSkip, label }: TraceStep): string | undefined {
  const { type } = message;
  if (type === 'cel') {
    const field = /\.transformation\.(.+)$/.exec(textIn(message['configPath']))?.[1];
    if (field === undefined) return undefined;
    const { result } = membersOf(message);
    const problem = isRecord(result) ? result['error'] : undefined;
    return typeof problem === 'string'
      ? `${field} not set: ${problem}`
      : `${field} set to ${JSON.stringify(result)}`;
  }
  if (type === 'policyEvent') return message['kind'] === 'llm_cost' ? undefined : `${label}: ${summary}`;
  if (type === 'authorizationResult') return `${label}: ${summary}`;
  return type === 'policy' && !isSkip ? summary : undefined;
}

/** The price in USD, if the gateway knows it. */
function costOf({ steps }: TraceModel): number | undefined {
  const found = steps.findLast(
    ({ message }) => message.type === 'policyEvent' && message['kind'] === 'llm_cost',
  );
  const details = found?.message['details'];
  const cost = isRecord(details) ? details['cost'] : undefined;
  const total = isRecord(cost) ? cost['total'] : undefined;
  return typeof total === 'number' ? total : undefined;
}
