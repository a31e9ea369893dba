import { isRecord, textOf } from '../../../core/trace/read-event.ts';
import type { TraceModel, TraceStep } from '../../../core/trace-model.ts';

/** An effect of the gateway on an LLM call, described in words. */
export interface Effect {
  readonly what: string;
  readonly where: string;
  readonly tone: 'good' | 'warn' | 'bad';
}

/** Effects of transformations, guardrails and policies, in order. */
export function effectsOf({ steps }: TraceModel): Effect[] {
  return steps.flatMap((step): Effect[] => {
    const { message, severity } = step;
    const tone = severity === 'error' ? 'bad' : severity === 'warn' ? 'warn' : 'good';
    const what = describe(step);
    const where = step.place?.configPath ?? textOf(message['configPath']);
    return what === undefined ? [] : [{ what, where, tone }];
  });
}

function describe({ message, summary, isSkip, label }: TraceStep): string | undefined {
  const { type } = message;
  if (type === 'cel') {
    const field = /\.transformation\.(.+)$/.exec(textOf(message['configPath']))?.[1];
    if (field === undefined) return undefined;
    const { result } = message as { readonly result?: unknown };
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
export function costOf({ steps }: TraceModel): number | undefined {
  const found = steps.findLast(
    ({ message }) => message.type === 'policyEvent' && message['kind'] === 'llm_cost',
  );
  const details = found?.message['details'];
  const cost = isRecord(details) ? details['cost'] : undefined;
  const total = isRecord(cost) ? cost['total'] : undefined;
  return typeof total === 'number' ? total : undefined;
}
