import { isSensitiveName, REDACTED } from '../../../core/credentials.ts';
import { LIMITS } from '../../../core/limits.ts';
import type {
  AuthorizationResultMessage,
  CelMessage,
  CelPart,
  PolicyMessage,
  TracePlace,
  TraceSeverity,
} from '../../../core/trace/event.ts';
import { placeOf } from '../../../core/trace/read-event.ts';
import { explainExpression } from '../../expressions/cel/explain.ts';
import type { SecretNames } from '../../kernel/compile-context.ts';
import type { TracedExpression } from '../../kernel/expression.ts';
import type { CelOutcome, Decision, PolicyNote } from '../../kernel/observer.ts';
import type { Policy, RequestContext } from '../../kernel/request/request-context.ts';
import { expressionState, readsUnchecked } from './request-state.ts';
import { toTraceJson } from './trace-json.ts';

/** Takes the place of a value that guardrails may not have checked yet. */
const UNCHECKED_VALUE = '<not shown before guardrails have checked it>';

const SEVERITIES = { apply: 'info', skip: 'info', deny: 'error', end: 'error', respond: 'info' } as const;

export const severityOfNote = ({ severity, action }: PolicyNote): TraceSeverity =>
  severity ?? SEVERITIES[action];

/** The event of a policy. Denying, ending and responding are reported as `apply`. */
export function policyMessage(
  { kind: key, action, reason, snapshot }: PolicyNote,
  policy: Policy | undefined,
): PolicyMessage {
  return {
    type: 'policy',
    kind: policy?.trace?.kind ?? key,
    result:
      action === 'skip'
        ? { type: 'skip', reason }
        : { type: 'apply', details: reason, snapshot: snapshot ?? null },
    policy: key,
    action,
    ...policy?.origin?.place,
  };
}

/** The event of an authorization decision, rule by rule. Located at the deciding rule, else at the policy. */
export function authorizationMessage(
  policy: string,
  { allowed, reason, rule, rules = [] }: Decision,
  place: TracePlace | undefined,
  item: AuthorizationResultMessage['item'],
): AuthorizationResultMessage {
  return {
    type: 'authorizationResult',
    rules,
    result: allowed ? 'allow' : 'deny',
    policy,
    reason,
    ...(item === undefined ? {} : { item }),
    ...place,
    ...placeIn(rule?.place),
  };
}

function placeIn(place: TracePlace | undefined): TracePlace {
  return place?.configPath === undefined ? {} : (placeOf({ ...place }) ?? {});
}

/** The event of an evaluated expression, with the values of its subexpressions. */
export function celMessage(
  expression: TracedExpression,
  peek: (root: string) => unknown,
  outcome: CelOutcome,
  ctx: RequestContext,
  names: SecretNames,
): CelMessage {
  const { source, variables, roots, place } = expression;
  // Such as a header's value that is written as a CEL string.
  const hasSecret = names.scrub !== undefined && names.scrub(source) !== source;
  const omits = names.omitsUnchecked === true && readsUnchecked(expression);
  const printable = (text: string, result: CelOutcome): unknown => {
    if ('error' in result) return { error: result.error };
    // A decision is not content.
    if (omits && typeof result.value !== 'boolean') return UNCHECKED_VALUE;
    if (typeof result.value === 'string' && (hasSecret || readsCredential(text, names))) return REDACTED;
    return (
      toTraceJson(result.value, { left: LIMITS.traceTextLength, scrub: names.scrub }, names.headers) ?? null
    );
  };
  const parts = explainExpression(source, variables, peek, LIMITS.traceCelParts).map(
    ({ start, end, outcome: part }): CelPart => ({
      start,
      end,
      value: printable(source.slice(start, end), part),
    }),
  );
  return {
    type: 'cel',
    expr: source,
    requestState: expressionState(roots, peek, ctx, names),
    result: printable(source, outcome),
    ...(parts.length === 0 ? {} : { parts }),
    ...place,
  };
}

/** Whether CEL source reads a header, cookie or query parameter that holds a credential. */
function readsCredential(text: string, names: SecretNames): boolean {
  if (/\bcookie\b/i.test(text)) return true;
  for (const [, name] of text.matchAll(/["'.]([\w-]+)/g))
    if (isSensitiveName(name ?? '', names.headers)) return true;
  return false;
}
