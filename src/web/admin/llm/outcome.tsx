import type { ReactNode } from 'react';
import type { TraceModel } from '../../../core/trace-model.ts';
import { visible } from '../../shared/visible.ts';
import { costOf, effectsOf } from './effects.ts';
import type { ChatState } from './use-chat.ts';

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
              <span className={tone}>{SIGNS[tone]}</span> {visible(what)}{' '}
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
    ['First text after', firstAfter === undefined ? '–' : `${firstAfter} ms`],
    ['All after', `${took} ms`],
    ['Ended by', visible(finish ?? '?')],
  ];
  return (
    <dl className="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
