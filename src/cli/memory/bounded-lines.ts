import { Transform } from 'node:stream';
import { jsonIn } from '../../core/foreign.ts';

const NEWLINE = 10;
const [QUOTE, BACKSLASH, COLON, COMMA] = [34, 92, 58, 44] as const;
const OPENS: ReadonlySet<number> = new Set([91, 123]);
const CLOSES: ReadonlySet<number> = new Set([93, 125]);
/** Bytes of a name or an id that are looked at. */
const TOKEN = 256;

/** What lines a stream passes on. */
export interface BoundedLines {
  /** Bytes of a line, with its end. */
  readonly most: number;
  /** What is passed on of a line; undefined for nothing. */
  read(line: Buffer): string | undefined;
  /** Called at the end of a line that was discarded, with the id of the request in it, if it is one. */
  onDiscarded(id: string | number | undefined): void;
  /** Called when all was read, before the end is passed on. */
  beforeEnd(done: () => void): void;
}

/** A stream that passes on complete lines, each as one chunk, and discards those that are longer, as they arrive. */
export function boundedLines({ most, read, onDiscarded, beforeEnd }: BoundedLines): Transform {
  let parts: Buffer[] = [];
  let size = 0;
  let discarded: RequestId | undefined;
  const add = (part: Buffer): void => {
    size += part.length;
    if (discarded !== undefined) discarded.add(part);
    else if (size <= most) parts.push(part);
    else {
      discarded = new RequestId();
      for (const each of [...parts, part]) discarded.add(each);
      parts = [];
    }
  };
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      let from = 0;
      for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
        add(chunk.subarray(from, at + 1));
        from = at + 1;
        if (discarded !== undefined) onDiscarded(discarded.found);
        else this.push(read(Buffer.concat(parts)) ?? '');
        parts = [];
        size = 0;
        discarded = undefined;
      }
      if (from < chunk.length) add(chunk.subarray(from));
      done();
    },
    flush(done) {
      if (discarded !== undefined) onDiscarded(discarded.found);
      beforeEnd(done);
    },
  });
}

/** Reads the id of a JSON-RPC request that is too long to be parsed: clients write it before or after the parameters. */
class RequestId {
  #depth = 0;
  #isString = false;
  #isEscaped = false;
  /** The name or value at the uppermost level that is being read, a character for each byte, and the name before it. */
  #token = '';
  #name = '';
  #id: unknown;
  #isRequest = false;

  /** Undefined for a response, a notification, and what is not JSON. */
  get found(): string | number | undefined {
    const id = this.#id;
    return this.#isRequest && (typeof id === 'string' || typeof id === 'number') ? id : undefined;
  }

  add(bytes: Buffer): void {
    for (const byte of bytes) this.#next(byte);
  }

  #next(byte: number): void {
    if (this.#isString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === BACKSLASH) this.#isEscaped = true;
      else if (byte === QUOTE) this.#isString = false;
    } else if (byte === QUOTE) this.#isString = true;
    else if (OPENS.has(byte)) this.#depth += 1;
    else if (CLOSES.has(byte)) {
      if (this.#depth === 1) this.#endMember();
      this.#depth -= 1;
    } else if (this.#depth === 1 && byte === COMMA) {
      this.#endMember();
      return;
    } else if (this.#depth === 1 && byte === COLON) {
      this.#name = this.#token.trim();
      this.#token = '';
      return;
    }
    const isKept = this.#depth === 1 && !OPENS.has(byte) && this.#token.length < TOKEN;
    if (isKept) this.#token += String.fromCharCode(byte);
  }

  #endMember(): void {
    if (this.#name === '"id"') this.#id = jsonIn(Buffer.from(this.#token, 'latin1').toString('utf8'));
    if (this.#name === '"method"') this.#isRequest = true;
    this.#name = '';
    this.#token = '';
  }
}
