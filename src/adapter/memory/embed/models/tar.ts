// Reads tar archives as npm, GNU tar and bsdtar write them: POSIX.1-1988 headers (ustar), with the extended headers of
// POSIX.1-2001 (pax) or GNU for long paths and sizes. Links and devices are listed, never followed.

const BLOCK = 512;
/** An extended header: paths have a few hundred bytes. */
const EXTENDED_BYTES = 1024 * 1024;

export interface TarEntry {
  readonly path: string;
  /** False for folders, links and devices. */
  readonly isFile: boolean;
  readonly size: number;
  /** What is not read is skipped. */
  readonly content: AsyncIterable<Buffer>;
}

/** @throws Error for bytes that are no tar archive, or end too early */
export async function* tarEntries(bytes: AsyncIterable<Buffer>): AsyncGenerator<TarEntry> {
  const reader = new Reader(bytes);
  let long: Readonly<Record<string, string>> = {};
  for (let isFirst = true; ; isFirst = false) {
    const block = await reader.block();
    // Blocks of zeros are at the end.
    if (block === undefined || block.every((byte) => byte === 0)) {
      if (isFirst) throw new Error('it has no files');
      break;
    }
    const { path, type, size } = headerIn(block, long);
    if (type === 'x' || type === 'L' || type === 'g') {
      if (size > EXTENDED_BYTES) throw new Error('a path is too long');
      const text = await reader.text(size);
      // Global headers contain comments, and times.
      if (type !== 'g') long = { ...long, ...(type === 'L' ? { path: cString(text) } : records(text)) };
      continue;
    }
    long = {};
    // `7` is what a file on a contiguous disk was.
    const isFile = (type === '0' || type === '' || type === '7') && !path.endsWith('/');
    reader.open(size);
    yield { path: path.replace(/^(?:\.\/)+/, ''), isFile, size, content: reader.content() };
    await reader.skip();
  }
  await reader.drain();
}

function headerIn(
  block: Buffer,
  long: Readonly<Record<string, string>>,
): { path: string; type: string; size: number } {
  const text = (start: number, length: number): string =>
    cString(block.toString('utf8', start, start + length));
  // The sum of all bytes, with spaces in place of the sum itself.
  let sum = 8 * 0x20;
  for (const [index, byte] of block.entries()) if (index < 148 || index >= 156) sum += byte;
  if (Number.parseInt(text(148, 8).trim(), 8) !== sum) throw new Error('the checksum of a header is wrong');
  const prefix = text(257, 5) === 'ustar' ? text(345, 155) : '';
  const size = Number(long['size'] ?? sizeIn(block));
  if (!Number.isSafeInteger(size) || size < 0) throw new Error('the size of a file is wrong');
  return {
    path: long['path'] ?? (prefix === '' ? text(0, 100) : `${prefix}/${text(0, 100)}`),
    type: text(156, 1),
    size,
  };
}

/** Octal digits, or from 8 GiB on a binary number that GNU tar marks with the highest bit. */
function sizeIn(block: Buffer): number {
  const field = block.subarray(124, 136);
  if (((field[0] ?? 0) & 0x80) === 0) return Number.parseInt(cString(field.toString()).trim() || '0', 8);
  return Number(field.readBigUInt64BE(4));
}

const cString = (text: string): string => text.replace(/\0.*$/s, '');

/** `LENGTH NAME=VALUE` and a line break, of which LENGTH counts the bytes. */
function records(text: string): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (let rest = Buffer.from(text); rest.length > 0; ) {
    const length = Number.parseInt(rest.toString('latin1', 0, 20), 10);
    const [, name = '', value = ''] =
      /^\d+ ([^=]+)=(.*)\n$/s.exec(rest.toString('utf8', 0, length > 0 ? length : 0)) ?? [];
    if (name === '') throw new Error('an extended header is wrong');
    if (name === 'path' || name === 'size') found[name] = value;
    rest = rest.subarray(length);
  }
  return found;
}

/** Bytes in the order of the archive: headers, then the content of an opened file with its padding. */
class Reader {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);
  /** Of the opened file: bytes that are left, and those of its padding. */
  #left = 0;
  #padding = 0;

  constructor(bytes: AsyncIterable<Buffer>) {
    this.#chunks = bytes[Symbol.asyncIterator]();
  }

  /** Undefined at the end. */
  async block(): Promise<Buffer | undefined> {
    const parts: Buffer[] = [];
    let length = 0;
    while (length < BLOCK) {
      const part = await this.#some(BLOCK - length);
      if (part === undefined) break;
      parts.push(part);
      length += part.length;
    }
    if (length > 0 && length < BLOCK) throw new Error('it ends too early');
    return length === 0 ? undefined : Buffer.concat(parts);
  }

  async text(size: number): Promise<string> {
    this.open(size);
    const parts: Buffer[] = [];
    for await (const part of this.content()) parts.push(part);
    await this.skip();
    return Buffer.concat(parts).toString('utf8');
  }

  open(size: number): void {
    this.#left = size;
    this.#padding = (BLOCK - (size % BLOCK)) % BLOCK;
  }

  async *content(): AsyncGenerator<Buffer> {
    while (this.#left > 0) {
      const part = await this.#some(this.#left);
      if (part === undefined) throw new Error('it ends too early');
      this.#left -= part.length;
      yield part;
    }
  }

  /** Goes to the next header. */
  async skip(): Promise<void> {
    for await (const part of this.content()) void part;
    while (this.#padding > 0) {
      const part = await this.#some(this.#padding);
      if (part === undefined) throw new Error('it ends too early');
      this.#padding -= part.length;
    }
  }

  /** Reads to the end, where gzip has its checksum. */
  async drain(): Promise<void> {
    while ((await this.#some(BLOCK)) !== undefined);
  }

  async #some(most: number): Promise<Buffer | undefined> {
    while (this.#rest.length === 0) {
      const next = await this.#chunks.next();
      if (next.done === true) return undefined;
      this.#rest = next.value;
    }
    const part = this.#rest.subarray(0, most);
    this.#rest = this.#rest.subarray(part.length);
    return part;
  }
}
