import type { Dispatcher } from 'undici';
import { LIMITS } from '../../../core/limits.ts';
import { type BodySink, UpstreamBody } from '../../transport/upstream/upstream-body.ts';
import type { ChatEvent } from '../chat/chat.ts';
import {
  type EventReader,
  type EventSplitter,
  type EventWriter,
  type StreamEvent,
  Untranslatable,
} from '../chat/chat-format.ts';
import { EventOrder } from './event-order.ts';

/** Why a stream without a last event is not complete. */
export const CUT_OFF = 'it closed the stream before the last event';

/** What translates one stream. */
export interface StreamTranslation {
  readonly splitter: EventSplitter;
  readonly reader: EventReader;
  readonly writer: EventWriter;
  /** `LIMITS.translatedStreamPing` */
  readonly pingAfter: number;
  /** Called with every event before it is written; returns the events to write instead. */
  readonly change: (event: ChatEvent) => readonly ChatEvent[];
  /** Called if the stream cannot be translated. Returns the error that ends it for the client. */
  readonly onFailure: (error: unknown) => Extract<ChatEvent, { type: 'error' }>;
}

/**
 * Translates a stream as it arrives, with back-pressure to the provider. A stream that cannot be translated ends with
 * an error event in the client's format; one that the provider cuts off fails like a stream that is not translated.
 */
export class TranslatedBody implements BodySink {
  readonly body: UpstreamBody;
  readonly #source: UpstreamBody;
  readonly #translation: StreamTranslation;
  readonly #order = new EventOrder();
  #parts = 0;
  #isPaused = false;
  /** Nothing more is written: the last event was, the stream failed, or the client has disconnected. */
  #isOver = false;
  #writtenAt = performance.now();

  constructor(source: UpstreamBody, translation: StreamTranslation) {
    this.#source = source;
    this.#translation = translation;
    const controller = {
      pause: () => {
        this.#isPaused = true;
      },
      resume: () => this.#resume(),
      abort: () => {
        this.#isOver = true;
        source.discard();
      },
    };
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- bodies call only these three methods
    this.body = new UpstreamBody(controller as unknown as Dispatcher.DispatchController);
    source.consume(this);
  }

  push(chunk: Buffer): boolean {
    this.#translate((splitter) => splitter.push(chunk));
    // What follows the last event is read and ignored, so that the connection can be used again.
    return this.#isOver || !this.#isPaused;
  }

  end(): void {
    this.#translate((splitter) => splitter.end(), true);
    this.fail(CUT_OFF, false);
  }

  fail(why: string, isTimeout: boolean): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.body.fail(why, isTimeout);
  }

  #resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#source.resume();
  }

  #translate(split: (splitter: EventSplitter) => readonly StreamEvent[], isEnd = false): void {
    if (this.#isOver) return;
    const { writer, onFailure } = this.#translation;
    let text = '';
    let isLast = false;
    try {
      for (const event of this.#events(split, isEnd)) {
        text += writer.write(event);
        isLast = event.type === 'end' || event.type === 'error';
        if (isLast) break;
      }
    } catch (error) {
      text += writer.write(onFailure(error));
      isLast = true;
      // First, so that the end of the source does not count as that of the provider.
      this.#isOver = true;
      this.#source.discard();
    }
    this.#write(text, isLast);
  }

  *#events(
    split: (splitter: EventSplitter) => readonly StreamEvent[],
    isEnd: boolean,
  ): Generator<ChatEvent, void> {
    const { splitter, reader, change } = this.#translation;
    for (const { data, type } of split(splitter))
      for (const event of reader.read(data, type))
        for (const completed of this.#order.completed(this.#counted(event))) yield* change(completed);
    if (!isEnd) return;
    for (const event of reader.end())
      for (const completed of this.#order.completed(this.#counted(event))) yield* change(completed);
  }

  /** Throws `Untranslatable` beyond `LIMITS.llmParts`. */
  #counted(event: ChatEvent): ChatEvent {
    if (event.type === 'partStart') this.#parts += 1;
    if (this.#parts > LIMITS.llmParts)
      throw new Untranslatable('the response', `it has more than ${LIMITS.llmParts} parts`);
    return event;
  }

  #write(text: string, isLast: boolean): void {
    const now = performance.now();
    // The provider is working, but nothing can be written yet: neither side should take the stream for stalled.
    const isQuiet = text === '' && now - this.#writtenAt > this.#translation.pingAfter;
    const written = isQuiet ? this.#translation.writer.write({ type: 'ping' }) : text;
    if (isLast) this.#isOver = true;
    if (written !== '') {
      this.#writtenAt = now;
      this.body.push(Buffer.from(written));
    }
    if (isLast) this.body.end();
  }
}
