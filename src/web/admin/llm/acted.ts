import { isRecord, textOf } from '../../../core/trace/read-event.ts';
import type { TraceModel, TraceStep } from '../../../core/trace-model.ts';

/** Something that the gateway did to a call of a model, in words. */
export interface Acted {
  readonly what: string;
  readonly where: string;
  readonly tone: 'good' | 'warn' | 'bad';
}

/** Transformations, guardrails and policies that did something, in their order. */
export function actedOf({ steps }: TraceModel): Acted[] {
  return steps.flatMap((step): Acted[] => {
    const { message, severity } = step;
    const tone = severity === 'error' ? 'bad' : severity === 'warn' ? 'warn' : 'good';
    const what = wordsOf(step);
    const where = step.place?.configPath ?? textOf(message['configPath']);
    return what === undefined ? [] : [{ what, where, tone }];
  });
}

function wordsOf({ message, summary, isSkip, label }: TraceStep): string | undefined {
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

/** The price in USD, when the gateway knows one. */
export function costOf({ steps }: TraceModel): number | undefined {
  const found = steps.findLast(
    ({ message }) => message.type === 'policyEvent' && message['kind'] === 'llm_cost',
  );
  const details = found?.message['details'];
  const cost = isRecord(details) ? details['cost'] : undefined;
  const total = isRecord(cost) ? cost['total'] : undefined;
  return typeof total === 'number' ? total : undefined;
}
