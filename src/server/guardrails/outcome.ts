export type Phase = 'request' | 'response';

/** A guardrail could not be reached or sent an invalid response. With `failClosed`, the call is rejected. */
export class GuardrailError extends Error {}

/** Names of phases and verdicts in metrics. */
export const PHASES = { request: 'Request', response: 'Response' } as const;
export const ACTIONS = { pass: 'Allow', mask: 'Mask', reject: 'Reject' } as const;
