import type { Limits } from '../../core/limits.ts';
import { Slot } from '../kernel/slot.ts';
import type { Completion, StreamedCompletion } from './chat/conversation.ts';
import type { PromptMessage } from './chat/prompt.ts';
import type { ProviderError } from './errors.ts';
import type { Operation } from './formats/format.ts';
import type { FormatKey, ProviderFormatKey } from './formats/index.ts';
import type { BatchPart } from './request/endpoints.ts';
import type { Usage } from './usage.ts';

/** The state of one LLM call, for the access log and for expressions (`llm.*`). Filled in during the call. */
export interface LlmCall {
  /** Limits of its stream. */
  readonly limits: Pick<
    Limits,
    'batchLineBytes' | 'streamIdle' | 'streamFrameBytes' | 'translatedStreamPing' | 'realtimeMessageBytes'
  >;
  /** The client's wire format; undefined on `passthrough` paths of unknown format. */
  readonly format?: FormatKey | undefined;
  /** The wire format for the provider, if it is another one. */
  readonly upstreamFormat?: ProviderFormatKey | undefined;
  readonly operation: Operation;
  /** Name of the provider in telemetry and price catalogs. */
  readonly provider: string;
  /** That of the client; of a batch without one, the models of its requests. */
  requestModel: string;
  /** The name in the configuration that `requestModel` matched: exact or a pattern; undefined for `*`. */
  readonly configuredModel?: string | undefined;
  /** Model name sent to the provider, if the configuration changes it. */
  readonly providerModel?: string | undefined;
  readonly streaming: boolean;
  /** The response is not model text (vectors, audio, images), so tokens cannot be estimated from its bytes. */
  hasNoText?: boolean;
  /** The provider charges nothing, so no tokens are counted. */
  isFree?: boolean;
  /** The answer is one that was given before: `cache` of the model. */
  isCacheHit?: boolean;
  /** Returns a stored response: its usage is new only if it was created in the background. */
  readonly isRetrieval?: boolean | undefined;
  /** The response was created in the background, so that no other call has reported its usage. */
  ranInBackground?: boolean | undefined;
  /** A call of batches. */
  readonly batch?: BatchPart | undefined;
  /** What its answer adds to what was counted of the batch before. */
  counted?: { readonly usage: Usage; readonly cost: CostOutcome } | undefined;
  /** Its tokens are not counted: `passthrough: opaque` of the model. */
  readonly isUnmetered?: boolean;
  /** The client's request, parsed and unchanged. */
  readonly request: Readonly<Record<string, unknown>>;
  responseModel?: string | undefined;
  /** How far the call got. Unreported tokens are estimated unless the call was `rejected` or never sent (undefined). */
  progress?: 'sent' | 'rejected' | 'responding' | 'complete' | undefined;
  /** The provider's response is a failure according to `health` of the model, or there was none. */
  failed?: boolean | undefined;
  /** Records the outcome of a call whose response has begun in the health of its model; once. */
  settle?: ((isFailure: boolean) => void) | undefined;
  /** The error reported by the provider, possibly in the body of a 2xx response. */
  providerError?: ProviderError | undefined;
  /** Token counts reported by the provider. Missing counts are estimated when the call ends. */
  usage?: Usage | undefined;
  /**
   * Of a translated call: the counts that its provider reported, in all classes; null: none so far. The client's format
   * may have fewer classes, or counts that cannot be left out.
   */
  providerUsage?: Usage | null;
  /** Why `usage` is an estimate. */
  estimated?: string | undefined;
  /** UTF-8 bytes of model output seen so far. */
  outputBytes?: number | undefined;
  /** `outputBytes` are those of a whole response that was too long to be read, or is not JSON. */
  isUnread?: boolean;
  /** Copies a non-streaming response until `finalize` reads it. */
  nonStreaming?: { see(chunk: Buffer): void; finalize(call: LlmCall): void } | undefined;
  /** Milliseconds from the request to the first and to the last token. */
  firstTokenAfter?: number | undefined;
  lastTokenAfter?: number | undefined;
  cost?: CostOutcome | undefined;
  /** What a budget was charged last, so that the price of the same tokens is not looked up again. */
  priced?: { readonly usage: Usage; readonly cost: CostOutcome };
  /** Whether log expressions read the completion, so that it must be kept. */
  readonly keepsCompletion?: boolean | undefined;
  /** Prompt and completion after guardrails. Only kept if log expressions read them. */
  prompt?: readonly PromptMessage[];
  completion?: Completion | undefined;
  streamed?: StreamedCompletion;
  /** Number of images, files and recordings that guardrails could not check. */
  unseenMedia?: number;
  /** The longest time guardrails held back a response frame, in ms. */
  heldFor?: number;
}

/** Result of the price lookup. `status` is a metric label; amounts are in USD, `total` as exact decimal text. */
export interface CostOutcome {
  readonly status: 'Exact' | 'Unpriced' | 'Missing' | 'NoCatalog';
  /** Why the cost is unknown, for the log. */
  readonly reason?: string;
  readonly total?: string;
  /** `total` in 10^-12 USD. */
  readonly picoUsd?: bigint;
  /** Costs by token class (`input`, `output`, `cacheRead`, …) and `total`, as numbers for expressions. */
  readonly parts?: Readonly<Record<string, number>>;
  readonly rates?: Readonly<Record<string, number>>;
}

/** The gateway refuses the answer of the provider, so that nothing of it counts. */
export function refuse(call: LlmCall): void {
  call.progress = 'rejected';
  call.usage = undefined;
  if (call.providerUsage !== undefined) call.providerUsage = null;
  call.outputBytes = undefined;
  call.completion = undefined;
}

/** The LLM call of a request. Set once its body is parsed and a model is selected. */
export const llmCall = new Slot<LlmCall>();

/** Models of a virtual model that have failed before the one that answered, in order. As many as it has targets at most. */
export const failedModels = new Slot<string[]>();

/** The requested model, shortened for the log, if it is unknown or forbidden. */
export const refusedModel = new Slot<string>();
