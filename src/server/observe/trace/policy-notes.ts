import type {
  AuthorizationResultMessage,
  PolicyAction,
  PolicyMessage,
  TracePlace,
  TraceSeverity,
} from '../../../core/trace/event.ts';
import type { Decision } from '../../policies/rules.ts';

/** What a policy tells of what it did. */
export interface PolicyNote {
  /** Key of the policy in the configuration. */
  readonly kind: string;
  readonly action: PolicyAction;
  /** Why, in words: the rule that decided, the header that was missing. */
  readonly reason: string;
  /** Values that the decision rests on. Never holds credentials. */
  readonly snapshot?: Readonly<Record<string, unknown>>;
  readonly severity?: TraceSeverity;
  /** When it began, from `Tracer.now`, for what took time. */
  readonly since?: number;
}

/** How upstream calls a policy in events and in the stages of snapshots. A policy that is not here keeps its own key. */
const NAMES: Readonly<Record<string, { readonly kind: string; readonly stage: string }>> = {
  mcpAuthentication: { kind: 'jwt', stage: 'jwt auth' },
  apiKey: { kind: 'api_key', stage: 'api key' },
  extAuthz: { kind: 'ext_auth', stage: 'ext authz' },
  localRateLimit: { kind: 'local_rate_limit', stage: 'local rate limit' },
  requestHeaderModifier: { kind: 'request_header_modifier', stage: 'request header modifier' },
  responseHeaderModifier: { kind: 'response_header_modifier', stage: 'response header modifier' },
  urlRewrite: { kind: 'url_rewrite', stage: 'url rewrite' },
  directResponse: { kind: 'direct_response', stage: 'direct response' },
  mcpAuthorization: { kind: 'mcp_authorization', stage: 'mcp authorization' },
};

/** How upstream names a policy among those in force, and the phase in which it lists it. */
export const effectiveKeyOf = (policy: string): string => (policy === 'mcpAuthentication' ? 'jwt' : policy);
export const phaseOf = (policy: string): 'route' | 'backend' =>
  policy === 'mcpAuthorization' ? 'backend' : 'route';

export const kindOf = (policy: string): string => NAMES[policy]?.kind ?? policy;

/** The stage of a snapshot after a policy. */
export const stageOf = (policy: string): string => NAMES[policy]?.stage ?? policy;

const SEVERITIES = { apply: 'info', skip: 'info', deny: 'error', end: 'error', respond: 'info' } as const;

export const severityOfNote = ({ severity, action }: PolicyNote): TraceSeverity =>
  severity ?? SEVERITIES[action];

/** What a policy did, as an event. Refusing, ending and answering are ways to apply. */
export function policyMessage(
  { kind: policy, action, reason, snapshot }: PolicyNote,
  place: TracePlace | undefined,
): PolicyMessage {
  return {
    type: 'policy',
    kind: kindOf(policy),
    result:
      action === 'skip'
        ? { type: 'skip', reason }
        : { type: 'apply', details: reason, snapshot: snapshot ?? null },
    policy,
    action,
    ...place,
  };
}

/** What rules decided, rule by rule; the place is that of the rule that decided, or else of the policy. */
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
