import type { AppError } from '../../../core/errors.ts';
import { JSON_START, type JsonPlace } from '../../guardrails/json-text.ts';
import type { Phase } from '../../guardrails/outcome.ts';
import { LlmError, llmError } from '../errors.ts';
import type { TextPart, TextPath } from '../texts.ts';

/** Categories of the content of a request, by upstream's names; the last one is an addition. */
export const CONTENT_SCOPES = [
  'systemPrompt',
  'messages',
  'toolOutput',
  'toolInput',
  'toolDefinitions',
] as const;
export type ContentScope = (typeof CONTENT_SCOPES)[number];

/** A text that guardrails check: of a message of a request, or of the model's output. */
export interface GuardedText {
  readonly role: string;
  readonly content: string;
  readonly part: TextPart;
  /** Of a text in the conversation of a request, or in the definition of a tool. Every guardrail sees texts without one. */
  readonly scope?: ContentScope | undefined;
  /** Whether only another URL may replace the text, or nothing at all. Undefined: any text. */
  readonly form?: 'url' | 'fixed' | undefined;
  /** The parts of `content`, which are joined by spaces there. Undefined: it is one text. */
  readonly pieces?: readonly string[] | undefined;
  /** Texts with the same one follow each other for the reader, such as content blocks of one message. */
  readonly run?: string | undefined;
  /** Whether it is outside of the conversation of a request. */
  readonly isOutside?: boolean;
  /**
   * Number of characters at the beginning about which the check decides now; the rest is checked again together with
   * the text that follows it in the stream. Undefined: all.
   */
  readonly decided?: number;
  /** The last character before the text, which was already sent: whether a word begins with the text. */
  readonly before?: string;
  /** The text is JSON and begins at this place of it. */
  readonly json?: JsonPlace;
}

/** Whether a whole text is JSON: the arguments of a tool as APIs other than Anthropic's and Google's write them. */
export function jsonOf(part: TextPart, path: TextPath): Pick<GuardedText, 'json'> {
  return part === 'toolCalls' && path.at(-1) === 'arguments' ? { json: JSON_START } : {};
}

/** 503: content that was not checked must not pass. `detail` is for the log. */
export function failed(phase: Phase, detail: string): AppError {
  return llmError(
    'guardrail_failed',
    'guardrail_failed',
    `failed to process LLM ${phase}: prompt guard failed`,
    detail,
  );
}

/** 413, or 502: the client, or the provider, sent content that no check can read. `why` is for the client, too. */
export function uncheckable(phase: Phase, why: string): AppError {
  const message = `failed to process LLM ${phase}: ${why}`;
  return phase === 'request'
    ? llmError('body_too_large', 'request_too_large', message)
    : new LlmError('guardrail_failed', 'guardrail_failed', { message, status: 502 });
}

/** The scope of the content of a message with this role. */
export function scopeOfRole(role: string): ContentScope {
  if (role === 'system' || role === 'developer') return 'systemPrompt';
  return role === 'tool' || role === 'function' ? 'toolOutput' : 'messages';
}
