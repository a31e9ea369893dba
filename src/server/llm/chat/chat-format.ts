import type { ChatError, ChatEvent, ChatRequest, ChatResponse, ChatUsage } from './chat.ts';

export type Json = Readonly<Record<string, unknown>>;

export type MemberNames = Readonly<Partial<Record<keyof ChatRequest, string>>>;

/** What the path of a call says in formats whose bodies do not. */
export interface CallTarget {
  readonly model: string;
  readonly stream: boolean;
}

/** A wire format in which providers are called for chats. */
export interface ProviderChatFormat {
  /** As in `formats` of a `custom` provider. */
  readonly key: string;
  /** Path of a call, below the base path of the provider. */
  path(call: CallTarget): string;
  /** Headers that every call needs, by lower-case name. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Throws `Untranslatable` for what this format cannot express. */
  writeRequest(request: ChatRequest): Json;
  readResponse(body: Json): ChatResponse;
  /** The token counts of a complete response, which is paid for even if it cannot be read otherwise. */
  readUsage(body: Json): ChatUsage | undefined;
  readError(body: unknown, status: number): ChatError;
  /** Splits the bytes of a provider's stream. Default: server-sent events. */
  readonly framing?: Framing;
  /** Reads one stream. */
  eventReader(): EventReader;
}

/** A wire format of clients and of providers. */
export interface ChatFormat extends ProviderChatFormat {
  /** Names of members of the neutral request in this format, for errors. */
  readonly memberNames?: MemberNames;
  /** Throws `Untranslatable` for members that other formats cannot express. */
  readRequest(body: Json, target: CallTarget): ChatRequest;
  /** `request` is that of the client, which some formats repeat in their responses. */
  writeResponse(response: ChatResponse, request: ChatRequest): Json;
  writeError(error: ChatError): Json;
  /** Writes one stream. */
  eventWriter(request: ChatRequest): EventWriter;
}

/** How events are separated in a stream. */
export interface Framing {
  /** Media type of such streams. */
  readonly mediaType: string;
  /** Splits one stream. `maxBytes` bounds one event; `push` throws on a longer one and on invalid bytes. */
  splitter(maxBytes: number): EventSplitter;
}

export interface EventSplitter {
  push(chunk: Buffer): readonly StreamEvent[];
  /** Events in the bytes that are left when the stream has ended. */
  end(): readonly StreamEvent[];
}

export interface StreamEvent {
  readonly type?: string | undefined;
  readonly data: string;
}

export interface EventReader {
  /** The token counts reported so far. */
  readonly usage: ChatUsage | undefined;
  /**
   * The events in the data of one server-sent event (`type` is its `event` field). Throws `Untranslatable` for content
   * that only this format has.
   */
  read(data: string, type?: string): readonly ChatEvent[];
  /** Events that follow from the end of the stream, for formats without a last event. Empty if it was cut off. */
  end(): readonly ChatEvent[];
}

export interface EventWriter {
  /** The server-sent events as text, including the empty lines; '' if there are none. */
  write(event: ChatEvent): string;
}

/**
 * A request or response that cannot be translated. `what` names the member (`messages[2].content[0].type: "video_url"`);
 * `why` says what to do instead, if there is anything.
 */
export class Untranslatable extends Error {
  readonly what: string;
  readonly why: string | undefined;

  constructor(what: string, why?: string) {
    super(why === undefined ? what : `${what}: ${why}`);
    this.what = what;
    this.why = why;
  }
}

/** A model that failed: formats have no reason to stop for that, and an empty answer would look like the end of the work. */
export class Unfinished extends Untranslatable {
  /** What the provider says of it. It may quote output of the model, so guardrails have to read it. */
  readonly said: string | undefined;

  constructor(what: string, said?: string) {
    super(what, 'the model ended without a complete answer');
    this.said = said;
  }
}
