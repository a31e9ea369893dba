import type { LlmRouteType } from '../../../core/trace/event.ts';
import type { ChatFormat, ProviderChatFormat } from '../chat/chat-format.ts';
import type { Completion, StreamedOutput } from '../chat/conversation.ts';
import type { EmbeddingFormat, ProviderEmbeddingFormat } from '../chat/embedding-format.ts';
import type { Members } from '../json-members.ts';
import type { TextPath } from '../texts.ts';
import type { Usage } from '../usage.ts';
import type { EventTexts } from './event-texts.ts';

/** `gen_ai.operation.name` of OpenTelemetry, as far as it has a name. */
export type Operation = 'chat' | 'text_completion' | 'embeddings' | 'responses' | 'other';

/** A wire format in which providers are called. */
export interface ProviderWireFormat<Key extends string = string> {
  readonly key: Key;
  /** Its name in traces, which is upstream's. Default: `Detect`. */
  readonly routeType?: LlmRouteType;
  /** How chats are translated to it. */
  readonly chat?: ProviderChatFormat;
  /** How embeddings are translated to it. */
  readonly embedsTo?: ProviderEmbeddingFormat;
  readonly cacheMarks?: CacheMarks;
}

/** All that is known of a wire format of clients. What it lacks, its calls do not have. */
export interface WireFormat<Key extends string = string> extends ProviderWireFormat<Key> {
  /** Paths of its calls, all of them POST with a JSON body, without `/v1`. */
  readonly paths: readonly string[];
  /**
   * Methods at the end of paths that name the model, such as `generateContent` of
   * `/v1beta/models/{model}:generateContent`, and whether they stream.
   */
  readonly methods?: Readonly<Record<string, { readonly stream: boolean }>>;
  /** Paths that also accept forms, which carry files. */
  readonly formPaths?: readonly string[];
  /** Whether a request to a path that no format has was sent by a client of this API. */
  isSpokenBy?(request: { readonly path: string; readonly headers: { has(name: string): boolean } }): boolean;
  /** Whether `routes` of the policy `ai` may name it. */
  readonly isRoutable?: boolean;
  readonly operation: Operation;
  /** The response is not model text (vectors, scores, audio, images), so tokens cannot be estimated from its bytes. */
  readonly hasNoText?: boolean;
  /** The model that the API uses if a request names none. */
  readonly defaultModel?: string;
  /** Providers charge nothing for a call, and it does not count towards token limits. */
  readonly isFree?: boolean;
  /**
   * Whether the answer to a request can be given again to an equal one: the request changes nothing at the provider. Without it,
   * no answer of the format can.
   */
  isCacheable?(body: Fields): boolean;
  /** How chats are translated from and to it. */
  readonly chat?: ChatFormat;
  /** How embeddings are translated from it. */
  readonly embedsFrom?: EmbeddingFormat;

  /** Members of a request that carry prompts, in the order of the conversation. */
  readonly promptFields?: readonly PromptField[];
  /** Members that define tools and the format of the answer, at any depth outside of the conversation. */
  readonly definitions?: readonly string[];
  /** Where a body has the format of the answer, if its name means something else elsewhere. */
  readonly formatPath?: readonly [field: string, member: string];
  readonly numbers?: RequestedNumbers;
  readonly defaultFields?: DefaultFields;
  /** Writes members of a request that is not translated as this model, by its name at the provider, accepts them. */
  adapt?(body: Fields & { remove(field: string): void }, model: string): void;
  /** Adds the messages of a configuration to a conversation. */
  addMessages?(body: Fields, added: AddedMessages): void;
  /** The field of requests that each have to name the model of the call, and what writes its name into them. */
  readonly modelInItems?: { readonly field: string; write(body: Fields, model: string): void };
  /** The member that asks for a usage report, which a stream does not have otherwise. */
  readonly usageOption?: { readonly field: string; readonly value: object };
  /** How the gateway itself answers a call that counts tokens: the part that is counted, and the response. */
  readonly tokenCount?: { parts(body: Fields): Members; response(count: number): object };

  /** The model and usage reported by a response body, or by the data of an event of a stream. */
  report(value: Members): Report;
  /**
   * The token counts of a usage report; undefined if it has none. A stream may report in several events: the members of
   * later reports then replace those of earlier ones, unless a count would fall.
   */
  usage(report: Members): Usage | undefined;
  /** The usage report of a stream with that of its next event. Default: `mergedReport`. */
  addReport?(before: Members, report: Members, event: Members): Members;
  /** An event without the member that says it has no usage report, which only `usageOption` brings. No event is parsed for it. */
  withoutUsage?(frame: Buffer): Buffer;
  /** Whether an event has a usage report and nothing else. */
  isUsageOnly?(event: Members): boolean;
  /**
   * How answers to a request are changed to what it asks for, which not every provider heeds; undefined if they need not be. An answer
   * that is right stays the same object.
   */
  answerAsked?(request: Members): ((answer: Members) => Members) | undefined;
  /** Model output in a response body or in an event: its texts count as output if no usage is reported. */
  output(value: Members): unknown;
  /** Members of a response that have output of a model in a list. */
  readonly outputFields?: readonly OutputField[];
  /** A response has no text of a model: numbers only, or documents of the client. */
  readonly hasOnlyData?: boolean;
  /** Members in which a response repeats the request. */
  readonly repeatedFields?: ReadonlySet<string | number>;
  /** How the events of a stream carry text. Guardrails reject streams of formats without it. */
  readonly eventTexts?: EventTexts;
  /** The output of a response body for expressions; undefined for a body of another format. */
  readonly completion?: (value: Members) => Completion | undefined;
  /** What an event of a stream adds to the output for expressions. */
  readonly streamedOutput?: (event: Members) => StreamedOutput;
  /** How a response of this API is recognized. Those of formats without it are not checked. */
  readonly shape?: AnswerShape;
  /** Bytes in every event that reports usage. Default: `"usage"`. */
  readonly usageMark?: Buffer;
  /** Bytes in every event that has output, if others may be as long: those that repeat the output at its end. */
  readonly deltaMark?: Buffer;
  /** Bytes in the event after which clients take a stream as complete, if they do not wait for its end. */
  readonly endMarks?: readonly Buffer[];

  /**
   * Whether a guardrail's rejection is an error like others. Otherwise the text of the guardrail is the whole response
   * (the specification, "Guardrails").
   */
  readonly wrapsRejections?: boolean;
  /** Whether clients of this API can read an error response of a provider. Default: they can read any. */
  isError?(body: unknown): boolean;
  /** The body of an error response. */
  errorBody(error: ClientError): object;
  /**
   * A server-sent event, including the empty line, that ends a stream whose status has already been sent. `last` is the
   * data of the last event before it.
   */
  errorEvent(error: ClientError, last: Members | undefined): string;
  /** Default: that of the OpenAI API. */
  readonly modelList?: ModelListFormat;
}

export const defineFormat = <const Format extends WireFormat>(format: Format): Format => format;

/** The fields of a request body. */
export interface Fields {
  get(field: string): unknown;
  has(field: string): boolean;
  set(field: string, value: unknown): void;
}

/** A member of a request that carries prompts. */
export interface PromptField {
  readonly name: string;
  /** Its texts are instructions. */
  readonly isSystem?: boolean;
  /** Its items follow each other. Those of others are independent texts, such as those of embeddings. */
  readonly isConversation?: boolean;
  /** It may be one content instead of a text or a list. */
  readonly isContent?: boolean;
  /** Where an item has its content. Default: `content`. */
  contentPath?(item: object): TextPath;
  /** It is what expressions show as the prompt, besides instructions. */
  readonly isPrompt?: boolean;
  /** Its texts do not count as input if no usage is reported. */
  readonly isUncounted?: boolean;
}

/** A list with output of a model. */
export interface OutputField {
  readonly name: string;
  /** Its items are alternatives. Otherwise they follow each other. */
  readonly areAlternatives?: boolean;
  /** Where an item has its content, or the first of it; undefined if it has none, as a tool call. */
  contentPath(item: Members): TextPath | undefined;
}

/** Members with numbers that bound what a call costs. */
export interface RequestedNumbers {
  /** The member that they are in; its names. Default: the body itself. */
  readonly inside?: readonly string[];
  /** The largest number of output tokens. */
  readonly tokens: readonly string[];
  /** A number of answers, each of which costs output tokens. */
  readonly answers?: readonly string[];
}

/** How the fields of requests differ from those of chat completions, in which defaults are mostly written. */
export interface DefaultFields {
  readonly without: ReadonlySet<string>;
  /** New names by old ones. */
  readonly renamed?: ReadonlyMap<string, string>;
}

/** A message that the configuration adds to every prompt. */
export interface AddedMessage {
  readonly role: string;
  readonly content: string;
}

export interface AddedMessages {
  readonly prepend: readonly AddedMessage[];
  readonly append: readonly AddedMessage[];
}

/** How a request says up to where it is cached. */
export interface CacheMarks {
  /** Whether a model has it. Default: all have. */
  supports?(model: string): boolean;
  /** Whether it has it for definitions of tools, too. Default: all have. */
  supportsTools?(model: string): boolean;
  isMarked(block: unknown): boolean;
  /** Whether a block cannot have a mark. Default: none. */
  isUnmarkable?(block: unknown): boolean;
  /** The list with a mark at its end. */
  marked(blocks: readonly unknown[]): unknown[];
  /** Where the definitions of tools are. */
  tools(body: Fields): { readonly list: unknown; put(list: unknown): void };
}

export interface Report {
  readonly model?: unknown;
  readonly usage?: unknown;
  /** True if the response was created in the background. */
  readonly background?: unknown;
}

export interface AnswerShape {
  /** Name of the API. */
  readonly api: string;
  /** Whether a response body, or an event, is of this API and no other. */
  has(value: Members): boolean;
  /** Whether a response body, or an event, can be read as one of this API: members that only some servers have do not matter. */
  isAnswer(value: Members): boolean;
  /** Whether an event is one of an answer, not only of what surrounds it. Default: `isAnswer`. */
  isAnswerEvent?(event: Members): boolean;
  /**
   * Whether an event says that an answer is complete. A stream that ends without one, `[DONE]` or an error was cut off: a client
   * would take half of an answer for a whole one. Default: any stream is complete.
   */
  isLast?(event: Members): boolean;
  /**
   * A whole response in place of a stream is an error, and the reverse, unless it is a chat, which is turned into the other.
   */
  readonly isStrict?: boolean;
  /** A response may be no JSON, if the request asks for a text. */
  readonly mayBeText?: boolean;
  /** Whether a response that is a list is one of this API. Default: none is. */
  isList?(items: readonly unknown[]): boolean;
}

/** An error of the gateway, for the client. */
export interface ClientError {
  /** HTTP status; inside a stream, the status that the error would have had before it. */
  readonly status: number;
  /** `type` of the OpenAI format. */
  readonly type: string;
  readonly code: string;
  readonly message: string;
}

/** A format of model lists. All models are on one page, whatever the query says. */
export interface ModelListFormat {
  /** `startedAt` is Unix time in seconds. */
  entry(name: string, startedAt: number): ModelEntry;
  page(entries: readonly ModelEntry[]): object;
}

export interface ModelEntry {
  readonly id?: string;
  readonly [member: string]: unknown;
}
