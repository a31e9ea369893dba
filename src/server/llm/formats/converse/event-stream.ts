import { createRequire } from 'node:module';
import type { EventSplitter, Framing, StreamEvent } from '../../chat/chat-format.ts';

/** Streams of AWS: binary messages with headers and checksums (Smithy, "Amazon Event Stream"). */
export const eventStream: Framing = {
  mediaType: 'application/vnd.amazon.eventstream',
  splitter: (maxBytes) => new EventStreamSplitter(maxBytes),
};

type Library = typeof import('@smithy/core/event-streams');
type Codec = InstanceType<Library['EventStreamCodec']>;

let created: Codec | undefined;

/** Loaded at the first stream. */
function codec(): Codec {
  if (created !== undefined) return created;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of the library itself
  const { EventStreamCodec } = createRequire(import.meta.url)('@smithy/core/event-streams') as Library;
  created = new EventStreamCodec(
    (bytes) => (typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString('utf8')),
    (text) => Buffer.from(text, 'utf8'),
  );
  return created;
}

/** Total length, length of the headers, and a checksum of both. */
const PRELUDE = 12;
/** The prelude and the checksum of the message. */
const SHORTEST = PRELUDE + 4;

class EventStreamSplitter implements EventSplitter {
  readonly #maxBytes: number;
  #pending: Buffer = Buffer.alloc(0);

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  push(chunk: Buffer): StreamEvent[] {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    const events: StreamEvent[] = [];
    while (this.#pending.length >= PRELUDE) {
      const length = this.#pending.readUInt32BE(0);
      if (length < SHORTEST || length > this.#maxBytes) throw new Error('an event of the stream is too long');
      if (this.#pending.length < length) break;
      events.push(decode(this.#pending.subarray(0, length)));
      this.#pending = this.#pending.subarray(length);
    }
    return events;
  }

  end(): StreamEvent[] {
    return [];
  }
}

/** An event by its type; an exception and an error by their name, which the reader of events recognizes. */
function decode(message: Buffer): StreamEvent {
  const { headers, body } = codec().decode(message);
  const text = (name: string): string | undefined => {
    const value = headers[name]?.value;
    return typeof value === 'string' ? value : undefined;
  };
  const data = Buffer.from(body).toString('utf8');
  switch (text(':message-type')) {
    case 'exception':
      return { type: `exception:${text(':exception-type') ?? ''}`, data };
    case 'error':
      return {
        type: `exception:${text(':error-code') ?? ''}`,
        data: JSON.stringify({ message: text(':error-message') ?? '' }),
      };
    default:
      return { type: text(':event-type'), data };
  }
}
