import { createHash } from 'node:crypto';
import { createReadStream, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { AppError } from '../../../../core/errors.ts';
import { isRecord, membersOf, numberIn, parseJson, textIn } from '../../../../core/foreign.ts';
import { MEMORY_STORE_LIMITS } from '../../../../core/memory-limits.ts';

/** Beside the files of an added model. */
export const MANIFEST = 'agctl-model.json';

export interface StoredFile {
  readonly bytes: number;
  /** In hexadecimal. */
  readonly sha256: string;
}

/** What was added, and from where. */
export interface ModelManifest {
  /** A path, or `npm:NAME@VERSION`. */
  readonly source: string;
  /** RFC 3339, UTC. */
  readonly addedAt: string;
  /** Undefined if the model could not be opened when it was added, because there was no runtime. */
  readonly dimensions: number | undefined;
  /** By path in the folder, with `/`. */
  readonly files: Readonly<Record<string, StoredFile>>;
}

/**
 * The manifest of a folder; undefined if it has none, as the folders of `onnx:FOLDER`.
 *
 * @throws AppError `bad_request` if it cannot be read
 */
export function manifestIn(folder: string): ModelManifest | undefined {
  const path = join(folder, MANIFEST);
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return undefined;
  const found = stat.size > MEMORY_STORE_LIMITS.manifestBytes ? undefined : manifestFrom(textOf(path));
  if (found === undefined)
    throw new AppError('bad_request', { message: `${path} is damaged: remove the model and add it again` });
  return found;
}

function textOf(path: string): unknown {
  try {
    return parseJson(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}

function manifestFrom(value: unknown): ModelManifest | undefined {
  const { source, addedAt, dimensions, files } = membersOf(value);
  if (!isRecord(files)) return undefined;
  const stored: Record<string, StoredFile> = {};
  for (const [path, file] of Object.entries(files)) {
    const { bytes, sha256 } = membersOf(file);
    if (numberIn(bytes) === undefined || !/^[0-9a-f]{64}$/.test(textIn(sha256))) return undefined;
    stored[path] = { bytes: numberIn(bytes) ?? 0, sha256: textIn(sha256) };
  }
  return {
    source: textIn(source),
    addedAt: textIn(addedAt),
    dimensions: numberIn(dimensions),
    files: stored,
  };
}

/**
 * Compares the files of an added model with its manifest. Files without one are not checked.
 *
 * @throws AppError `bad_request` that names the file that differs, and how to add the model again
 */
export async function verifyModel(folder: string): Promise<void> {
  const manifest = manifestIn(folder);
  if (manifest === undefined) return;
  const differs = (file: string, how: string): AppError =>
    new AppError('bad_request', {
      message: `${join(folder, file)} ${how}: add the model again, from ${manifest.source}`,
    });
  for (const [file, { bytes, sha256 }] of Object.entries(manifest.files)) {
    const stat = statSync(join(folder, file), { throwIfNoEntry: false });
    if (stat === undefined) throw differs(file, 'is missing');
    if (stat.size !== bytes)
      throw differs(file, `has ${stat.size} bytes, but had ${bytes} when it was added`);
    if ((await hashOf(join(folder, file))) !== sha256)
      throw differs(file, 'has changed since it was added (its SHA-256 differs)');
  }
  // A file beside the model can change what it computes.
  const extra = filesIn(folder).find((file) => !Object.hasOwn(manifest.files, file) && file !== MANIFEST);
  if (extra !== undefined) throw differs(extra, 'was not there when the model was added');
}

/** Paths with `/` of the files in a folder. */
function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => !statSync(join(folder, path)).isDirectory())
    .map((path) => path.replaceAll('\\', '/'));
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const bytes of createReadStream(path)) hash.update(bytes);
  return hash.digest('hex');
}
