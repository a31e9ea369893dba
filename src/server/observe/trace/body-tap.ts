import { Readable } from 'node:stream';
import type { BodyWriter } from '../../../core/body-writer.ts';
import { LIMITS } from '../../../core/limits.ts';

/** Copies the first `LIMITS.traceBodyBytes` bytes of a body while it is transferred. */
export class BodyTap {
  readonly #chunks: Buffer[] = [];
  #size = 0;

  add(chunk: unknown): void {
    if (typeof chunk === 'string') this.#keep(Buffer.from(chunk));
    else if (chunk instanceof Uint8Array) this.#keep(Buffer.from(chunk));
  }

  #keep(bytes: Buffer): void {
    const room = LIMITS.traceBodyBytes - this.#size;
    this.#size += bytes.length;
    if (room > 0) this.#chunks.push(bytes.subarray(0, room));
  }

  /** `add` under the name that body observers need. */
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

/** Copies everything written to a client's response. Only used for traced requests. */
export function tapResponse(response: BodyWriter): BodyTap {
  const tap = new BodyTap();
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- gets what the caller of the function below passes
  const write = response.write.bind(response) as (...all: unknown[]) => boolean;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as above
  const end = response.end.bind(response) as (...all: unknown[]) => unknown;
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

/** Copies a request body on its way to the backend. `done` is called once, when the body has ended or was abandoned. */
export function tapUpload<B extends null | string | Uint8Array | Readable>(
  body: B,
  done: (tap: BodyTap, isStream: boolean) => void,
): B | Readable {
  if (body === null) return body;
  const tap = new BodyTap();
  if (body instanceof Readable) return Readable.from(tapped(body, tap, done), { objectMode: false });
  tap.add(body);
  done(tap, false);
  return body;
}

async function* tapped(
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
