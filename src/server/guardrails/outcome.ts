export type Phase = 'request' | 'response';

/** A guardrail could not be reached or sent an invalid response. With `failClosed`, the call is rejected. */
export class GuardrailError extends Error {}

/**
 * No guardrail could check this content: it is too long, or nested too deeply. Only its sender can change that, so the client gets
 * the message, too.
 */
export class UncheckableError extends GuardrailError {}

/** Of a text that is longer than guardrails read. `what` is the text. */
export const tooLongToCheck = (what: string, characters: number): UncheckableError =>
  new UncheckableError(
    `${what} has more than ${characters} characters, the most that a guardrail checks at once: send shorter texts`,
  );

/** Names of phases and verdicts in metrics. */
export const PHASES = { request: 'Request', response: 'Response' } as const;
export const ACTIONS = { pass: 'Allow', mask: 'Mask', reject: 'Reject' } as const;
