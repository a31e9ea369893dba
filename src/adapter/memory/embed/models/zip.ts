import { createReadStream } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { crc32, createInflateRaw } from 'node:zlib';

// Reads ZIP archives by their central directory (APPNOTE.TXT 6.3, sections 4.3.7, 4.3.12 and 4.3.16), files that are stored
// or deflated. Without encryption, several volumes, and the extension for more than 4 GiB or 65,535 files (ZIP64).

const END = 0x06_05_4b_50;
const END_BYTES = 22;
const COMMENT_BYTES = 0xff_ff;
const ENTRY = 0x02_01_4b_50;
const ENTRY_BYTES = 46;
const LOCAL = 0x04_03_4b_50;
const LOCAL_BYTES = 30;
/** The list of all files: some 100 bytes each. */
const DIRECTORY_BYTES = 64 * 1024 * 1024;

const UNIX = 3;
/** The bits of a Unix mode that say what kind of file it is, and those of a symbolic link. */
const KIND = 0o170_000;
const LINK = 0o120_000;

const STORED = 0;
const DEFLATED = 8;

export interface ZipEntry {
  readonly path: string;
  /** False for folders and symbolic links. */
  readonly isFile: boolean;
  readonly isEncrypted: boolean;
  readonly method: number;
  readonly crc: number;
  /** In bytes, in the archive and unpacked. */
  readonly packed: number;
  readonly size: number;
  /** Where its header is in the archive. */
  readonly at: number;
}

/** All files of an archive, in the order of its list. @throws Error for what is no such archive */
export async function* zipEntries(file: FileHandle): AsyncGenerator<ZipEntry> {
  const { size } = await file.stat();
  const tail = await bytesAt(file, Math.max(0, size - END_BYTES - COMMENT_BYTES), END_BYTES + COMMENT_BYTES);
  const end = tail.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]));
  if (end === -1 || tail.length - end < END_BYTES || tail.readUInt32LE(end) !== END)
    throw new Error('it has no list of its files');
  const [count, bytes, at] = [
    tail.readUInt16LE(end + 10),
    tail.readUInt32LE(end + 12),
    tail.readUInt32LE(end + 16),
  ];
  if (count === 0xff_ff || at === 0xff_ff_ff_ff) throw new Error('it is in the format ZIP64');
  if (bytes > DIRECTORY_BYTES) throw new Error('it has too many files');
  const directory = await bytesAt(file, at, bytes);
  let offset = 0;
  for (let index = 0; index < count; index += 1) {
    if (directory.length - offset < ENTRY_BYTES || directory.readUInt32LE(offset) !== ENTRY)
      throw new Error('its list of files is damaged');
    const name = directory.readUInt16LE(offset + 28);
    const others = directory.readUInt16LE(offset + 30) + directory.readUInt16LE(offset + 32);
    const path = directory.toString('utf8', offset + ENTRY_BYTES, offset + ENTRY_BYTES + name);
    const mode = directory[offset + 5] === UNIX ? directory.readUInt16LE(offset + 40) : 0;
    yield {
      path,
      isFile: !path.endsWith('/') && (mode & KIND) !== LINK,
      isEncrypted: (directory.readUInt16LE(offset + 8) & 1) === 1,
      method: directory.readUInt16LE(offset + 10),
      crc: directory.readUInt32LE(offset + 16),
      packed: directory.readUInt32LE(offset + 20),
      size: directory.readUInt32LE(offset + 24),
      at: directory.readUInt32LE(offset + 42),
    };
    offset += ENTRY_BYTES + name + others;
  }
}

/** The unpacked bytes of a file. @throws Error if they are not those that the list promises */
export async function* zipContent(
  archive: string,
  file: FileHandle,
  { isEncrypted, method, crc, packed, size, at }: ZipEntry,
): AsyncGenerator<Buffer> {
  if (isEncrypted) throw new Error('it is encrypted');
  if (method !== STORED && method !== DEFLATED)
    throw new Error(`its compression (method ${method}) is not supported`);
  const local = await bytesAt(file, at, LOCAL_BYTES);
  if (local.length < LOCAL_BYTES || local.readUInt32LE(0) !== LOCAL) throw new Error('it has no header');
  const start = at + LOCAL_BYTES + local.readUInt16LE(26) + local.readUInt16LE(28);
  let length = 0;
  let sum = 0;
  if (packed > 0) {
    const bytes = createReadStream(archive, { start, end: start + packed - 1 });
    const unpacked = method === STORED ? bytes : bytes.compose(createInflateRaw());
    for await (const chunk of unpacked as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > size) break;
      sum = crc32(chunk, sum);
      yield chunk;
    }
  }
  if (length !== size || sum !== crc) throw new Error('it is damaged (its checksum differs)');
}

/** Fewer at the end of the file. */
async function bytesAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const { size } = await file.stat();
  const bytes = Buffer.alloc(Math.max(0, Math.min(length, size - position)));
  let read = 0;
  while (read < bytes.length) {
    const { bytesRead } = await file.read(bytes, read, bytes.length - read, position + read);
    if (bytesRead === 0) break;
    read += bytesRead;
  }
  return bytes.subarray(0, read);
}
