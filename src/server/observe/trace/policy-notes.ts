import type {
  AuthorizationResultMessage,
  PolicyMessage,
  TracePlace,
  TraceSeverity,
} from '../../../core/trace/event.ts';
import type { Decision, PolicyNote } from '../../kernel/observer.ts';
import type { Policy } from '../../kernel/request-context.ts';

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
  if (place?.configPath === undefined) return {};
  const { configPath, configFile, configLine, configColumn } = place;
  return { configPath, configFile, configLine, configColumn } as TracePlace;
}
