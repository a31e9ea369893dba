import { createParser } from 'eventsource-parser';

const CR = 13;
const LF = 10;
const EMPTY_LINE = Buffer.from('\n\n');

/**
 * An event exceeds `LIMITS.streamFrameBytes`. Real events are smaller, and buffering it would need unbounded memory.
 */
export class OversizedFrameError extends Error {}

/**
 * Splits a byte stream of server-sent events into frames, each including the empty line that ends it. The concatenated
 * frames are the unchanged stream. Lines end with LF, CRLF or CR (HTML standard, "Server-sent events").
 * eventsource-parser cannot do this, because it returns values without their bytes.
 */
export class FrameSplitter {
  readonly #maxBytes: number;
  #pending: Buffer = Buffer.alloc(0);
  /** Memory of `#pending` if it has several chunks, and how much of it is used. It has room for more of them. */
  #store: Buffer | undefined;
  #used = 0;
  /** Number of bytes of `#pending` that were already searched. */
  #searched = 0;

  /** `maxBytes` bounds one event: `LIMITS.streamFrameBytes`. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Adds a chunk and returns the frames completed by it. Throws `OversizedFrameError`. */
  push(chunk: Buffer): Buffer[] {
    // Fast path for nearly every chunk: exactly one complete event with LF line endings.
    if (this.#pending.length === 0 && chunk.indexOf(CR) === -1) {
      const at = chunk.indexOf(EMPTY_LINE);
      if (at !== -1 && at === chunk.length - EMPTY_LINE.length) return [chunk];
    }
    this.#append(chunk);
    const frames: Buffer[] = [];
    for (let end = this.#end(); end !== -1; end = this.#end()) {
      frames.push(this.#pending.subarray(0, end));
      this.#pending = this.#pending.subarray(end);
      this.#searched = 0;
    }
    if (this.#pending.length > this.#maxBytes)
      throw new OversizedFrameError('an event of the stream is too long');
    return frames;
  }

  /** An event of many chunks is copied a few times, and not again with each chunk. Frames keep their bytes: only free memory is written. */
  #append(chunk: Buffer): void {
    const before = this.#pending.length;
    if (before === 0) {
      this.#pending = chunk;
      this.#store = undefined;
      return;
    }
    if (this.#store === undefined || this.#store.length - this.#used < chunk.length) {
      this.#store = Buffer.allocUnsafe(2 * (before + chunk.length));
      this.#used = this.#pending.copy(this.#store);
    }
    this.#used += chunk.copy(this.#store, this.#used);
    this.#pending = this.#store.subarray(this.#used - before - chunk.length, this.#used);
  }

  /** The bytes after the last complete frame. */
  rest(): Buffer {
    return this.#pending;
  }

  /** Position after the first empty line, or -1. */
  #end(): number {
    const bytes = this.#pending;
    if (bytes.indexOf(CR) === -1) {
      const at = bytes.indexOf(EMPTY_LINE, Math.max(0, this.#searched - 1));
      if (at !== -1) return at + EMPTY_LINE.length;
      this.#searched = bytes.length;
      return -1;
    }
    // A line break at the end of the searched part may be the first half of an empty line.
    for (let at = Math.max(0, this.#searched - 3); at < bytes.length; at += 1) {
      const after = lineBreak(bytes, at);
      if (after === 0) continue;
      const second = lineBreak(bytes, at + after);
      // A CR at the end of the received bytes may be followed by its LF.
      if (second !== 0 && !(bytes[at + after] === CR && at + after + 1 === bytes.length))
        return at + after + second;
    }
    this.#searched = bytes.length;
    return -1;
  }
}

/** Length of the line break at a position; 0 if there is none. */
function lineBreak(bytes: Buffer, at: number): number {
  const byte = bytes[at];
  if (byte === LF) return 1;
  if (byte !== CR) return 0;
  return bytes[at + 1] === LF ? 2 : 1;
}

let event: { readonly data: string; readonly type?: string | undefined } | undefined;
const parser = createParser({
  onEvent: ({ data, event: type }) => {
    event = { data, type };
  },
});

/** One event with the lines of its data joined; undefined if it has no data. The final empty line may be missing. */
export function eventOf(frame: Buffer): typeof event {
  event = undefined;
  parser.reset();
  parser.feed(`${frame.toString('utf8')}\n\n`);
  return event;
}

/** The `data` of one event. */
export function dataOf(frame: Buffer): string | undefined {
  return eventOf(frame)?.data;
}
