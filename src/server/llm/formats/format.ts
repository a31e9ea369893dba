import type { Members } from '../json-members.ts';
import type { Usage } from '../usage.ts';

/** Wire formats of calls, named as in `formats` of a `custom` provider. */
export type FormatKey =
  | 'generateContent'
  | 'geminiCountTokens'
  | 'embedContent'
  | 'batchEmbedContents'
  | 'completions'
  | 'textCompletions'
  | 'responses'
  | 'messages'
  | 'anthropicTokenCount'
  | 'embeddings'
  | 'rerank'
  | 'moderations'
  | 'speech'
  | 'transcriptions'
  | 'images'
  | 'realtime';

/** `gen_ai.operation.name` of OpenTelemetry, as far as it has a name. */
export type Operation = 'chat' | 'text_completion' | 'embeddings' | 'responses' | 'other';

/** A wire format of clients: where its calls are, what they cost, and what its errors look like. */
export interface Format {
  readonly key: FormatKey;
  /** Paths of its calls, all of them POST with a JSON body, without `/v1`. */
  readonly paths: readonly string[];
  /**
   * Methods at the end of paths that name the model, such as `generateContent` of
   * `/v1beta/models/{model}:generateContent`, and whether they stream.
   */
  readonly methods?: Readonly<Record<string, { readonly stream: boolean }>>;
  /** Paths that also accept forms, which carry files. */
  readonly formPaths?: readonly string[];
  readonly operation: Operation;
  /** The response is not model text (vectors, scores, audio, images), so tokens cannot be estimated from its bytes. */
  readonly hasNoText?: boolean;
  /** The model that the API uses if a request names none. */
  readonly defaultModel?: string;
  /** Providers charge nothing for a call, and it does not count towards token limits. */
  readonly isFree?: boolean;
  /** The model and usage reported by a response body, or by the data of an event of a stream. */
  report(value: Members): Report;
  /**
   * The token counts of a usage report; undefined if it has none. A stream may report in several events: the members of
   * later reports then replace those of earlier ones, unless a count would fall.
   */
  usage(report: Members): Usage | undefined;
  /** Model output in a response body or in an event: its texts count as output if no usage is reported. */
  output(value: Members): unknown;
  /**
   * Whether a guardrail's rejection is an error like others. Otherwise the text of the guardrail is the whole response
   * (the specification, "Guardrails").
   */
  readonly wrapsRejections?: boolean;
  /** Bytes in every event that reports usage. Default: `"usage"`. */
  readonly usageMark?: Buffer;
  /** Bytes in every event that has output, if others may be as long: those that repeat the output at its end. */
  readonly deltaMark?: Buffer;
  /** Bytes in the event after which clients take a stream as complete, if they do not wait for its end. */
  readonly endMarks?: readonly Buffer[];
  /** The body of an error response. */
  errorBody(error: ClientError): object;
  /**
   * A server-sent event, including the empty line, that ends a stream whose status has already been sent. `last` is the
   * data of the last event before it.
   */
  errorEvent(error: ClientError, last: Members | undefined): string;
}

export interface Report {
  readonly model?: unknown;
  readonly usage?: unknown;
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
