import { crc32, deflateRawSync, gzipSync } from 'node:zlib';

// Archives with exactly the entries that a test wants, also those that no program writes.

export interface ArchiveEntry {
  readonly path: string;
  readonly content?: Buffer | string;
  /** Target of a symbolic link, in place of a content. */
  readonly link?: string;
  /** Of a tar archive: the letter of its kind, by default that of a file or link. */
  readonly type?: string;
  /** What the archive says of the length of the content, in place of the truth. */
  readonly size?: number;
  /** Of a ZIP archive: what its list says of the file, in place of the truth. */
  readonly crc?: number;
  /** Of a ZIP archive. */
  readonly isEncrypted?: boolean;
}

const bytesOf = ({ content = '', link }: ArchiveEntry): Buffer => Buffer.from(link ?? content);

/** A tar archive with headers of POSIX.1-1988, compressed with gzip. */
export function tarOf(entries: readonly ArchiveEntry[]): Buffer {
  const parts = entries.flatMap((entry) => {
    const bytes = entry.link === undefined ? bytesOf(entry) : Buffer.alloc(0);
    const header = Buffer.alloc(512);
    header.write(entry.path, 0, 100);
    header.write('0000644\0', 100);
    header.write(`${(entry.size ?? bytes.length).toString(8).padStart(11, '0')}\0`, 124);
    header.write(entry.type ?? (entry.link === undefined ? '0' : '2'), 156);
    header.write(entry.link ?? '', 157, 100);
    header.write('ustar\x0000', 257);
    header.fill(' ', 148, 156);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    return [header, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)];
  });
  return gzipSync(Buffer.concat([...parts, Buffer.alloc(1024)]));
}

/** Each call of zlib takes 256 KiB: an archive with thousands of empty files would be made in seconds. */
const NOTHING = deflateRawSync('');

/** A ZIP archive, deflated. */
export function zipOf(entries: readonly ArchiveEntry[]): Buffer {
  const files: Buffer[] = [];
  const list: Buffer[] = [];
  let at = 0;
  for (const entry of entries) {
    const bytes = bytesOf(entry);
    const packed = bytes.length === 0 ? NOTHING : deflateRawSync(bytes);
    const name = Buffer.from(entry.path);
    const fields = Buffer.alloc(22);
    fields.writeUInt16LE(entry.isEncrypted === true ? 1 : 0, 0);
    fields.writeUInt16LE(8, 2);
    fields.writeUInt32LE(entry.crc ?? crc32(bytes), 8);
    fields.writeUInt32LE(packed.length, 12);
    fields.writeUInt32LE(entry.size ?? bytes.length, 16);
    fields.writeUInt16LE(name.length, 20);
    const local = Buffer.concat([
      Buffer.from('PK\x03\x04\x14\0', 'latin1'),
      fields,
      Buffer.alloc(2),
      name,
      packed,
    ]);
    const rest = Buffer.alloc(16);
    rest.writeUInt32LE(((entry.link === undefined ? 0o100_644 : 0o120_777) << 16) >>> 0, 8);
    rest.writeUInt32LE(at, 12);
    list.push(Buffer.from('PK\x01\x02\x14\x03\x14\0', 'latin1'), fields, rest, name);
    files.push(local);
    at += local.length;
  }
  const directory = Buffer.concat(list);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(entries.length, 4);
  end.writeUInt16LE(entries.length, 6);
  end.writeUInt32LE(directory.length, 8);
  end.writeUInt32LE(at, 12);
  return Buffer.concat([...files, directory, Buffer.from('PK\x05\x06', 'latin1'), end]);
}
