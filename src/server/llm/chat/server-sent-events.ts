import { eventOf, FrameSplitter } from '../frames.ts';
import type { EventSplitter, Framing, StreamEvent } from './chat-format.ts';

/** Server-sent events (HTML standard), the framing of most formats. */
export const serverSentEvents: Framing = {
  mediaType: 'text/event-stream',
  splitter: (maxBytes) => new ServerSentEventSplitter(maxBytes),
};

class ServerSentEventSplitter implements EventSplitter {
  readonly #frames: FrameSplitter;

  constructor(maxBytes: number) {
    this.#frames = new FrameSplitter(maxBytes);
  }

  push(chunk: Buffer): StreamEvent[] {
    return this.#frames.push(chunk).flatMap((frame) => eventOf(frame) ?? []);
  }

  /** A final event without an empty line: the standard discards it, but some servers end with one. */
  end(): StreamEvent[] {
    const rest = this.#frames.rest();
    return rest.length === 0 ? [] : [eventOf(rest) ?? []].flat();
  }
}
