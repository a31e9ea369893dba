import { Slot } from '../kernel/slot.ts';
import type { Completion, PromptMessage, StreamedCompletion } from './conversation.ts';
import type { ProviderError } from './provider-error.ts';
import type { Usage } from './usage.ts';

/** What is known of one LLM call, for the access log and for expressions (`llm.*`). Filled in as it becomes known. */
export interface LlmCall {
  readonly operation: 'chat' | 'text_completion' | 'embeddings' | 'responses' | 'other';
  /** Telemetry name of the provider, which is also its name in price catalogs. */
  readonly provider: string;
  readonly requestModel: string;
  /** Model that the provider was asked for, when the configuration names another. */
  readonly providerModel?: string;
  readonly streaming: boolean;
  /** What it answers is no text of a model, so that its bytes say nothing of tokens. */
  hasNoText?: boolean;
  /** The client's request, parsed, before anything was changed. */
  readonly request: Readonly<Record<string, unknown>>;
  responseModel?: string;
  /** How far it came: tokens that nobody reported are estimated for all but `refused`, and calls that were never sent. */
  progress?: 'asked' | 'refused' | 'answered' | 'whole';
  /** The error that the provider told: instead of an answer, or inside of one whose status was good. */
  providerError?: ProviderError | undefined;
  /** What the provider reported; completed by an estimate when the call has ended. */
  usage?: Usage;
  /** Why `usage` is an estimate. */
  estimated?: string;
  /** UTF-8 bytes that the model said, as far as they came by. */
  saidBytes?: number;
  /** Copies an answer that is no stream, until the call is settled. */
  nonStreaming?: { see(chunk: Buffer): void; settle(call: LlmCall): void };
  /** Milliseconds from the request to the first token, and to the last. */
  firstTokenAfter?: number;
  lastTokenAfter?: number;
  cost?: CostOutcome;
  /** Whether what the model says is to be kept for expressions of the log. */
  readonly keepsCompletion?: boolean;
  /** What was sent, and what the client was given, after guardrails: kept only for expressions of the log. */
  prompt?: readonly PromptMessage[];
  completion?: Completion | undefined;
  streamed?: StreamedCompletion;
  /** Images, files and recordings that guardrails were not shown. */
  unseenMedia?: number;
  /** How long response frames were held back by guardrails, in ms: the longest wait. */
  heldFor?: number;
}

/** Result of the price lookup: `status` is the metric's label. Amounts are exact decimal texts in USD. */
export interface CostOutcome {
  readonly status: 'Exact' | 'Unpriced' | 'Missing' | 'NoCatalog';
  /** Why there is no price, for the log. */
  readonly reason?: string;
  readonly total?: string;
  /** By class of token: `input`, `output`, `cacheRead`, … as numbers, for expressions. */
  readonly parts?: Readonly<Record<string, number>>;
  readonly rates?: Readonly<Record<string, number>>;
}

/** The model call of a request, once it is understood. */
export const llmCall = new Slot<LlmCall>();

/** The model that was asked for, when this caller has no such model; shortened, for the log. */
export const refusedModel = new Slot<string>();
