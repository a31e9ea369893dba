import { createReadStream } from 'node:fs';
import { createRequire } from 'node:module';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import type { ReadEntry } from 'tar';
import { AppError, messageOf } from '../../../../core/errors.ts';
import type { StoredFile } from './manifest.ts';
import { Budget, type ModelSource, refuseSource, staysInside, storeFile } from './model-source.ts';

interface TarEntry {
  readonly path: string;
  /** False for folders, links, devices, and kinds of one program, such as the sparse files of GNU tar. */
  readonly isFile: boolean;
  readonly size: number;
  /** What is not read is skipped. */
  readonly content: AsyncIterable<Buffer>;
}

/** A tar archive, compressed with gzip or not. It is read from the beginning for each call. */
export function tarSource(archive: string, isCompressed: boolean): ModelSource {
  const each = (use: (entry: TarEntry) => Promise<void>): Promise<void> => {
    const read = async (bytes: AsyncIterable<Buffer>): Promise<void> => {
      for await (const entry of tarEntries(bytes)) {
        if (!staysInside(entry.path))
          refuseSource(archive, `contains ${JSON.stringify(entry.path)}, which leads out of the archive`);
        await use(entry);
      }
    };
    const file = createReadStream(archive);
    return (isCompressed ? pipeline(file, createGunzip(), read) : pipeline(file, read)).catch(
      (error: unknown) => {
        if (error instanceof AppError) throw error;
        refuseSource(archive, `is not a tar archive, or damaged: ${messageOf(error)}`);
      },
    );
  };
  return {
    async list() {
      const paths: string[] = [];
      const budget = new Budget(archive);
      await each(async ({ path, isFile, size }) => {
        budget.addFile();
        budget.addBytes(size);
        if (isFile) paths.push(path);
      });
      return paths;
    },
    async copy(files) {
      const budget = new Budget(archive);
      const stored = new Map<string, StoredFile>();
      await each(async ({ path, isFile, content }) => {
        const target = files.get(path);
        if (target === undefined || !isFile) return;
        if (stored.has(path)) refuseSource(archive, `contains ${path} twice`);
        stored.set(path, await storeFile(Readable.from(content), target, budget));
      });
      return stored;
    },
  };
}

/** `OldFile` is one without a type, `ContiguousFile` what a file on a contiguous disk was. */
const FILES = new Set(['File', 'OldFile', 'ContiguousFile']);

/** @throws Error for bytes that are not a tar archive, or end too early */
async function* tarEntries(bytes: AsyncIterable<Buffer>): AsyncGenerator<TarEntry> {
  const parts = entriesAndContent(bytes);
  let next = await parts.next();
  async function* content(): AsyncGenerator<Buffer> {
    for (; next.done !== true && Buffer.isBuffer(next.value); next = await parts.next()) yield next.value;
  }
  while (next.done !== true) {
    const entry = next.value;
    next = await parts.next();
    // Content that was not read.
    if (Buffer.isBuffer(entry)) continue;
    yield {
      path: entry.path.replace(/^(?:\.\/)+/, ''),
      isFile: FILES.has(entry.type) && !entry.path.endsWith('/'),
      size: entry.size,
      content: content(),
    };
  }
}

/** Each entry, followed by the parts of its content. The parser gives at once what is in the bytes that it gets. */
async function* entriesAndContent(bytes: AsyncIterable<Buffer>): AsyncGenerator<ReadEntry | Buffer> {
  // Bundled with `import()`, it would make every command read all exports of node:zlib.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of the package
  const { Parser } = createRequire(import.meta.url)('tar/parse') as typeof import('tar/parse');
  const parser = new Parser({ strict: true });
  let found: (ReadEntry | Buffer)[] = [];
  let isEnd = false;
  let problem: Error | undefined;
  parser.on('entry', (entry: ReadEntry) => {
    found.push(entry);
    entry.on('data', (part) => found.push(part));
  });
  parser.on('ignoredEntry', (entry: ReadEntry) => {
    found.push(entry);
    if (entry.meta) problem ??= new Error('a path is too long');
  });
  parser.on('eof', () => {
    isEnd = true;
  });
  parser.on('error', (error: Error) => {
    problem ??= error;
  });
  for await (const chunk of bytes) {
    // Behind its end are zeros, and in gzip a checksum, for which the rest is read. The parser would keep all of it.
    if (isEnd) continue;
    parser.write(chunk);
    if (problem !== undefined) throw problem;
    yield* found;
    found = [];
  }
  if (isEnd) return;
  parser.end();
  throw problem ?? new Error('it ends too early');
}
