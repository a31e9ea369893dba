import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { crc32 } from 'node:zlib';
import type { Entry, ZipFile } from 'yauzl';
import { AppError, messageOf } from '../../../../core/errors.ts';
import type { StoredFile } from './manifest.ts';
import { Budget, type ModelSource, refuseSource, staysInside, storeFile } from './model-source.ts';

/** What an entry says of the system that has written it, and of the kind of a file there. */
const UNIX = 3;
const KIND = 0o170_000;
const FILE = 0o100_000;

interface OpenedZip {
  readonly zip: ZipFile;
  /** By path; without folders, links and devices. */
  readonly files: ReadonlyMap<string, Entry>;
}

/** A ZIP archive, such as a `.jar` or `.whl`. */
export function zipSource(archive: string): ModelSource {
  const withZip = async <T>(use: (opened: OpenedZip) => Promise<T>) => {
    const file = await open(archive);
    try {
      return await use(await openZip(archive, file));
    } catch (error) {
      if (error instanceof AppError) throw error;
      return refuseSource(archive, `is not a ZIP archive that can be read: ${messageOf(error)}`);
    } finally {
      await file.close();
    }
  };
  return {
    list: () => withZip(async ({ files }) => [...files.keys()]),
    copy: (wanted) =>
      withZip(async ({ zip, files }) => {
        const budget = new Budget(archive);
        const stored = new Map<string, StoredFile>();
        for (const [path, target] of wanted) {
          const entry = files.get(path);
          if (entry === undefined) refuseSource(archive, `${path} is not a file`);
          stored.set(
            path,
            await storeFile(contentOf(zip, entry), target, budget).catch((error: unknown) => {
              if (error instanceof AppError) throw error;
              return refuseSource(archive, `${path} cannot be unpacked: ${messageOf(error)}`);
            }),
          );
        }
        return stored;
      }),
  };
}

async function openZip(archive: string, file: FileHandle): Promise<OpenedZip> {
  const { RandomAccessReader, fromRandomAccessReaderPromise, getFileNameLowLevel } = await import('yauzl');
  const { size } = await file.stat();
  // The reader of yauzl throws for a position beyond 2^53, which an archive may contain, where nothing can catch it.
  class Reader extends RandomAccessReader {
    override read(
      buffer: Buffer,
      offset: number,
      length: number,
      position: number,
      done: (error: Error | null) => void,
    ): void {
      const end = new Error('it ends too early');
      if (position + length > size) done(end);
      else
        file
          .read(buffer, offset, length, position)
          .then(({ bytesRead }) => done(bytesRead < length ? end : null), done);
    }

    override _readStreamForRange(start: number, end: number): Readable {
      return createReadStream(archive, { start, end: end - 1 });
    }
  }
  const zip = await fromRandomAccessReaderPromise(new Reader(), size, {
    autoClose: false,
    // Names are checked here, so that all sources refuse them with the same words.
    decodeStrings: false,
  });
  const budget = new Budget(archive);
  const files = new Map<string, Entry>();
  for await (const entry of zip.eachEntry()) {
    budget.addFile();
    budget.addBytes(entry.uncompressedSize);
    const path = getFileNameLowLevel(
      entry.generalPurposeBitFlag,
      entry.fileNameRaw,
      entry.extraFields,
      false,
    );
    if (!staysInside(path))
      refuseSource(archive, `contains ${JSON.stringify(path)}, which leads out of the archive`);
    if (files.has(path)) refuseSource(archive, `contains ${path} twice`);
    if (isFile(path, entry)) files.set(path, entry);
  }
  return { zip, files };
}

function isFile(path: string, { versionMadeBy, externalFileAttributes }: Entry): boolean {
  const kind = versionMadeBy >> 8 === UNIX ? (externalFileAttributes >>> 16) & KIND : 0;
  return !path.endsWith('/') && (kind === 0 || kind === FILE);
}

/** The unpacked bytes of a file; yauzl compares their number. @throws Error if they are not those that the list promises */
async function* contentOf(zip: ZipFile, entry: Entry): AsyncGenerator<Buffer> {
  if (entry.isEncrypted()) throw new Error('it is encrypted');
  let sum = 0;
  const content: AsyncIterable<Buffer> = await zip.openReadStreamPromise(entry);
  try {
    for await (const chunk of content) {
      sum = crc32(chunk, sum);
      yield chunk;
    }
    if (sum !== entry.crc32) throw new Error('its checksum differs');
  } catch (error) {
    throw new Error(`it is damaged: ${messageOf(error)}`);
  }
}
