import type { PolicyMessage, TracePlace, TraceSeverity } from '../../../core/trace/event.ts';
import type { PolicyNote } from './tracer.ts';

/** How upstream calls a policy in events and in the stages of snapshots. A policy that is not here keeps its own key. */
const NAMES: Readonly<Record<string, { readonly kind: string; readonly stage: string }>> = {
  mcpAuthentication: { kind: 'jwt', stage: 'jwt auth' },
  apiKey: { kind: 'api_key', stage: 'api key' },
  extAuthz: { kind: 'ext_auth', stage: 'ext authz' },
  localRateLimit: { kind: 'local_rate_limit', stage: 'local rate limit' },
  requestHeaderModifier: { kind: 'request_header_modifier', stage: 'request header modifier' },
  responseHeaderModifier: { kind: 'response_header_modifier', stage: 'response header modifier' },
  directResponse: { kind: 'direct_response', stage: 'direct response' },
  mcpAuthorization: { kind: 'mcp_authorization', stage: 'mcp authorization' },
};

export const kindOf = (policy: string): string => NAMES[policy]?.kind ?? policy;

/** The stage of a snapshot after a policy. */
export const stageOf = (policy: string): string => NAMES[policy]?.stage ?? policy;

const SEVERITIES = { apply: 'info', skip: 'info', deny: 'error', respond: 'info' } as const;

export const severityOfNote = ({ severity, action }: PolicyNote): TraceSeverity =>
  severity ?? SEVERITIES[action];

/** What a policy did, as an event. Refusing and answering are ways to apply. */
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
