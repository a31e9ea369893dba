import type { Usage } from '../usage.ts';

/**
 * A chat call independent of the wire format. A translation reads one format into these types and writes another one
 * from them, so each format is written once and not once per pair. Members that a format cannot express are refused by
 * name (`Untranslatable`); none is dropped silently.
 */

export interface ChatRequest {
  readonly model: string;
  /** Instructions before the conversation, in order. */
  readonly system: readonly TextPart[];
  readonly turns: readonly Turn[];
  readonly tools: readonly Tool[];
  readonly toolChoice?: ToolChoice;
  /** False: at most one call per answer. Absent: as the provider likes. */
  readonly parallelToolCalls?: boolean;
  /** Upper bound of output tokens. */
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly stop?: readonly string[];
  readonly presencePenalty?: number;
  readonly frequencyPenalty?: number;
  readonly seed?: number;
  /** Number of answers. */
  readonly count?: number;
  readonly logprobs?: { readonly top?: number };
  readonly logitBias?: Readonly<Record<string, number>>;
  readonly output?: OutputFormat;
  readonly verbosity?: 'low' | 'medium' | 'high';
  readonly reasoning?: Reasoning;
  /** Identifier of the end user, for abuse detection. */
  readonly user?: string;
  /** Values that are stored with the call. */
  readonly metadata?: Readonly<Record<string, string>>;
  readonly serviceTier?: string;
  readonly stream: boolean;
  /** Whether the client asked for the token counts of a stream. Formats that always report them ignore this. */
  readonly streamUsage: boolean;
}

/** Messages of one author, in order. `system` turns are instructions in the middle of a conversation. */
export interface Turn {
  readonly role: 'user' | 'assistant' | 'system';
  readonly parts: readonly Part[];
  /** Name of the participant. */
  readonly name?: string;
}

export type Part =
  | TextPart
  | RefusalPart
  | ImagePart
  | AudioPart
  | FilePart
  | ToolCallPart
  | ToolResultPart
  | ReasoningPart;

/** Mark up to which a provider should cache the prompt: Anthropic's `cache_control`, Bedrock's `cachePoint`. */
export interface CacheMark {
  readonly ttl?: '5m' | '1h';
}

export interface TextPart {
  readonly type: 'text';
  readonly text: string;
  readonly cache?: CacheMark;
}

export interface RefusalPart {
  readonly type: 'refusal';
  readonly text: string;
}

export interface ImagePart {
  readonly type: 'image';
  readonly source: Source;
  readonly detail?: 'auto' | 'low' | 'high' | 'original';
  readonly cache?: CacheMark;
}

export interface AudioPart {
  readonly type: 'audio';
  /** `wav`, `mp3`, … */
  readonly format: string;
  /** Base64. */
  readonly data: string;
}

/** A document, such as a PDF. */
export interface FilePart {
  readonly type: 'file';
  readonly source: Source | { readonly kind: 'text'; readonly text: string };
  readonly name?: string;
  readonly cache?: CacheMark;
}

export type Source =
  | { readonly kind: 'url'; readonly url: string }
  /** `data` is Base64. */
  | { readonly kind: 'data'; readonly mediaType: string; readonly data: string }
  /** A file that was uploaded to the provider. */
  | { readonly kind: 'id'; readonly id: string };

export interface ToolCallPart {
  readonly type: 'toolCall';
  readonly id: string;
  readonly name: string;
  /** JSON text of an object. Of a custom tool: the input, any text. */
  readonly arguments: string;
  readonly isCustom?: boolean;
  readonly client?: ClientTool;
  readonly cache?: CacheMark;
}

/** How the client knows a tool that is a function for other providers. Only in the Responses API. */
export interface ClientTool {
  readonly name: string;
  readonly namespace?: string;
  /** The client searches for tools, and adds those that it finds to the conversation. */
  readonly isSearch?: boolean;
}

/** Only in turns of the user. */
export interface ToolResultPart {
  readonly type: 'toolResult';
  readonly callId: string;
  readonly parts: readonly (TextPart | ImagePart | FilePart)[];
  readonly isError?: boolean;
  readonly isCustom?: boolean;
  readonly cache?: CacheMark;
}

/** The model's reasoning. Providers verify `signature` or `encrypted` when it is sent back. */
export interface ReasoningPart {
  readonly type: 'reasoning';
  readonly text: string;
  /** `text` is a summary, not the reasoning itself. */
  readonly isSummary?: boolean;
  readonly signature?: string;
  /** Reasoning that only the provider can read. */
  readonly encrypted?: string;
  readonly id?: string;
  /** Format of the provider that made it: no other provider can read it back. */
  readonly origin?: string;
}

export type Tool =
  | {
      readonly kind: 'function';
      readonly name: string;
      /** The name for providers, if not all of them accept `name`. */
      readonly providerName?: string;
      readonly description?: string;
      /** JSON Schema of the arguments. */
      readonly parameters?: Readonly<Record<string, unknown>>;
      readonly strict?: boolean;
      readonly client?: ClientTool;
      readonly cache?: CacheMark;
    }
  /** Its input is text, not JSON. */
  | {
      readonly kind: 'custom';
      readonly name: string;
      readonly providerName?: string;
      readonly description?: string;
      readonly format?: Readonly<Record<string, unknown>>;
      readonly client?: ClientTool;
    };

export type ToolChoice =
  | { readonly mode: 'auto' | 'none' | 'required' }
  | { readonly mode: 'tool'; readonly name: string }
  /** One of the named tools: at most one call (`auto`) or at least one (`required`). */
  | { readonly mode: 'allowed'; readonly names: readonly string[]; readonly isRequired: boolean };

export type OutputFormat =
  | { readonly type: 'json' }
  | {
      readonly type: 'schema';
      readonly name?: string;
      readonly description?: string;
      readonly schema: Readonly<Record<string, unknown>>;
      readonly strict?: boolean;
    };

/** How much the model should reason: an effort or a number of tokens, never both. `effort: 'none'` turns it off. */
export interface Reasoning {
  readonly effort?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max';
  readonly budgetTokens?: number;
  /** Which summary of the reasoning is returned. */
  readonly summary?: 'auto' | 'concise' | 'detailed';
}

export interface ChatResponse {
  readonly id: string;
  readonly model: string;
  /** Unix time in seconds. */
  readonly created?: number;
  /** One per requested answer. */
  readonly answers: readonly Answer[];
  readonly usage?: ChatUsage;
  readonly serviceTier?: string;
}

/** What models answer in every format of clients. Readers refuse other content, such as images. */
export type AnswerPart = Extract<Part, { type: StartedPart['type'] }>;

export interface Answer {
  readonly parts: readonly AnswerPart[];
  readonly stop: StopReason;
  /** The stop sequence that ended the answer. */
  readonly stopSequence?: string;
}

/** `length`: the token limit. `filter`: a content filter of the provider. `pause`: the client shall continue the turn. */
export type StopReason = 'stop' | 'length' | 'toolCalls' | 'filter' | 'refusal' | 'stopSequence' | 'pause';

/** Token counts, as they are metered. */
export type ChatUsage = Usage;

/**
 * An event of a streamed answer. Parts are numbered from 0 across all answers; `answer` is the index of the answer.
 * Parts of one answer may be open at the same time (parallel tool calls).
 */
export type ChatEvent =
  | {
      readonly type: 'start';
      readonly id: string;
      readonly model: string;
      readonly created?: number;
      readonly usage?: ChatUsage;
    }
  | {
      readonly type: 'partStart';
      readonly part: number;
      readonly answer: number;
      readonly content: StartedPart;
    }
  /** More text, refusal, reasoning, or arguments of a tool call. */
  | { readonly type: 'delta'; readonly part: number; readonly text: string }
  /** Of a reasoning part, before its end. */
  | { readonly type: 'signature'; readonly part: number; readonly signature: string }
  | { readonly type: 'encrypted'; readonly part: number; readonly encrypted: string }
  | { readonly type: 'partEnd'; readonly part: number }
  | {
      readonly type: 'answerEnd';
      readonly answer: number;
      readonly stop: StopReason;
      readonly stopSequence?: string;
    }
  /** The last event of a successful stream. */
  | { readonly type: 'end'; readonly usage?: ChatUsage }
  /** The last event of a failed stream. */
  | { readonly type: 'error'; readonly error: ChatError }
  /** Keeps the connection alive. */
  | { readonly type: 'ping' };

export type StartedPart =
  | { readonly type: 'text' | 'refusal' }
  | {
      readonly type: 'reasoning';
      readonly isSummary?: boolean;
      readonly encrypted?: string;
      readonly id?: string;
      readonly origin?: ReasoningPart['origin'];
    }
  | {
      readonly type: 'toolCall';
      readonly id: string;
      readonly name: string;
      readonly isCustom?: boolean;
      readonly client?: ClientTool;
    };

/** An error of a provider. */
export interface ChatError {
  readonly message: string;
  /** HTTP status; of an error inside a stream, the status that the format documents for it. */
  readonly status: number;
  /** The provider's name of the error, such as `overloaded_error` or `context_length_exceeded`. */
  readonly code?: string;
  /** The request member that caused it. */
  readonly param?: string;
  /** Seconds until another try may succeed, if the body tells it. */
  readonly retryAfter?: number;
}
