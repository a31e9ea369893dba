import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { LIMITS } from '../../../core/limits.ts';

/** The beginning of a body on its way, up to `LIMITS.traceBodyBytes`. */
export class BodyTap {
  readonly #chunks: Buffer[] = [];
  #size = 0;

  add(chunk: unknown): void {
    if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array)) return;
    const bytes = Buffer.from(chunk as string);
    const room = LIMITS.traceBodyBytes - this.#size;
    this.#size += bytes.length;
    if (room > 0) this.#chunks.push(bytes.subarray(0, room));
  }

  /** The same, as an observer of a body. */
  see(chunk: Buffer): void {
    this.add(chunk);
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  get isEmpty(): boolean {
    return this.#size === 0;
  }

  get truncated(): boolean {
    return this.#size > LIMITS.traceBodyBytes;
  }
}

/** Looks at what is written to a client, whoever writes it. Of watched requests only. */
export function tapResponse(response: ServerResponse): BodyTap {
  const tap = new BodyTap();
  const write = response.write.bind(response) as (...all: unknown[]) => boolean;
  const end = response.end.bind(response) as (...all: unknown[]) => ServerResponse;
  response.write = (...all: unknown[]) => {
    tap.add(all[0]);
    return write(...all);
  };
  response.end = (...all: unknown[]) => {
    tap.add(all[0]);
    return end(...all);
  };
  return tap;
}

/** Looks at a request body that is sent on. `done` is called when it has ended, or was given up. */
export function tapUpload<B extends null | string | Uint8Array | Readable>(
  body: B,
  done: (tap: BodyTap, isStream: boolean) => void,
): B | Readable {
  if (body === null) return body;
  const tap = new BodyTap();
  if (body instanceof Readable) return Readable.from(passing(body, tap, done), { objectMode: false });
  tap.add(body);
  done(tap, false);
  return body;
}

async function* passing(
  body: AsyncIterable<Buffer>,
  tap: BodyTap,
  done: (tap: BodyTap, isStream: boolean) => void,
): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of body) {
      tap.add(chunk);
      yield chunk;
    }
  } finally {
    done(tap, true);
  }
}
