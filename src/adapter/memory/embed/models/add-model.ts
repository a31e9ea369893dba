import { existsSync, rmSync } from 'node:fs';
import { mkdtemp, open, readdir, rename, stat, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { AppError } from '../../../../core/errors.ts';
import { errorCode } from '../../../../core/foreign.ts';
import { makeFolder } from '../../../../core/make-folder.ts';
import { createOnnxEmbedder } from '../onnx/onnx-embedder.ts';
import { runtimeProblem } from '../onnx/runtime.ts';
import { checkSentenceModel } from '../onnx/sentence-model.ts';
import { findModel } from './find-model.ts';
import { MANIFEST, type ModelManifest, manifestIn, type StoredFile, verifyModel } from './manifest.ts';
import { refuseSource } from './model-source.ts';
import { isModelName, MODEL_NAME_FORM } from './model-store.ts';
import type { OpenedSource } from './open-source.ts';

/** Folders of models that are being added, with process and host: `.adding-4711@host-`. */
const PARTIAL = '.adding-';
/** One that is this old was left by a process that was killed, on whatever host. */
const PARTIAL_AGE = 24 * 3_600_000;
/** Models get a text in several scripts: a tokenizer of another model gives tokens that the model does not have. */
const PROBES = ['The harbour is closed on Tuesdays.', 'Größe: 東京の港 · порт · ميناء 42 %'] as const;
/** The beginning of what Git has in place of a large file. */
const LFS_POINTER = 'version https://git-lfs';

export interface Added {
  readonly name: string;
  readonly folder: string;
  readonly manifest: ModelManifest;
  /** Whether the same files were there already. */
  readonly isKnown: boolean;
  /** Why the model was not loaded, only its files checked; undefined if it was. */
  readonly unchecked: string | undefined;
}

/**
 * Copies the model of a source into the folder of models, after it was opened once. It appears there when it is complete.
 *
 * @param name of the model there; by default its own, or that of the source
 * @param file the ONNX file to use, if there are several
 * @throws AppError `bad_request` that says what the source lacks, or why the model cannot be used
 */
export async function addModel(
  models: string,
  { source, shown, name: sourceName, file: only }: OpenedSource,
  { name: given, file = only }: { readonly name?: string | undefined; readonly file?: string | undefined },
): Promise<Added> {
  if (given !== undefined && !isModelName(given))
    throw new AppError('bad_request', { message: `--name: expected ${MODEL_NAME_FORM}, not \`builtin\`` });
  const found = findModel(shown, await source.list(), file);
  const name = given ?? nameFrom(found.name ?? sourceName);
  if (!isModelName(name)) refuseSource(shown, 'gives no name for the model: choose one with --name');
  makeFolder(models, 0o700);
  await removeLeftovers(models);
  const partial = await mkdtemp(join(models, `${PARTIAL}${process.pid}@${HOST}-`));
  try {
    const targets = new Map([...found.files].map(([from, to]) => [from, join(partial, to)]));
    const stored = await source.copy(targets);
    const files: Record<string, StoredFile> = {};
    for (const [from, to] of found.files) {
      const file = stored.get(from);
      if (file === undefined) refuseSource(shown, `${from} could not be read`);
      files[to] = file;
    }
    await refusePointer(shown, join(partial, 'model.onnx'));
    const folder = join(models, name);
    const known = existsSync(folder) ? manifestIn(folder) : undefined;
    const problem = runtimeProblem();
    const isSame = known !== undefined && isDeepStrictEqual(known.files, files);
    // Damaged files are replaced, and a model is opened that could not be opened when it was added.
    const isWhole =
      isSame &&
      (await verifyModel(folder)
        .then(() => true)
        .catch(() => false));
    if (isWhole && (known.dimensions !== undefined || problem !== undefined))
      return {
        ...{ name, folder, manifest: known, isKnown: true },
        unchecked: known.dimensions === undefined ? problem : undefined,
      };
    if (existsSync(folder) && !isSame) refuseName(folder, name);
    if (problem !== undefined) checkFiles(shown, partial);
    const dimensions = problem === undefined ? await dimensionsOf(shown, partial) : undefined;
    const manifest = { source: shown, addedAt: new Date().toISOString(), dimensions, files };
    await writeFile(join(partial, MANIFEST), `${JSON.stringify(manifest, undefined, 2)}\n`, {
      mode: 0o600,
      flush: true,
    });
    if (isSame) rmSync(folder, { recursive: true, force: true });
    const other = await published(partial, folder);
    if (other === undefined) return { name, folder, manifest, isKnown: false, unchecked: problem };
    if (!isDeepStrictEqual(other.files, files)) refuseName(folder, name);
    return { name, folder, manifest: other, isKnown: true, unchecked: problem };
  } finally {
    // Nothing is left of it if it was renamed.
    rmSync(partial, { recursive: true, force: true });
  }
}

function refuseName(folder: string, name: string): never {
  throw new AppError('bad_request', {
    message: `${folder} exists, with other files: choose another name with --name, or remove it with agctl memory model remove ${name}`,
  });
}

/**
 * Gives a complete folder its name. If another process has taken the name meanwhile: what that has added, which is complete, too.
 *
 * @throws the system's error
 */
async function published(partial: string, folder: string): Promise<ModelManifest | undefined> {
  try {
    await rename(partial, folder);
    return undefined;
  } catch (error) {
    if (!TAKEN.has(errorCode(error))) throw error;
    const other = manifestIn(folder);
    if (other === undefined) throw error;
    return other;
  }
}

/** What systems say of a folder that is not empty. */
const TAKEN: ReadonlySet<string> = new Set(['ENOTEMPTY', 'EEXIST', 'EPERM', 'EACCES']);

/** A name of the allowed form, as near as possible. */
const nameFrom = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, '')
    .slice(0, 64);

const HOST = hostname()
  .replace(/[^A-Za-z0-9.]+/g, '_')
  .slice(0, 64);

/** Removes what killed processes have left. */
async function removeLeftovers(models: string): Promise<void> {
  for (const name of await readdir(models)) {
    if (!name.startsWith(PARTIAL)) continue;
    // Another process may have ended meanwhile.
    const age = Date.now() - ((await stat(join(models, name)).catch(() => undefined))?.mtimeMs ?? 0);
    const [, pid, host] = /^\.adding-(\d{1,10})@([^-]+)-/.exec(name) ?? [];
    const hasEnded = host === HOST && !isRunning(Number(pid));
    if (hasEnded || age > PARTIAL_AGE) rmSync(join(models, name), { recursive: true, force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}

/** What can be checked without the runtime. */
function checkFiles(shown: string, folder: string): void {
  try {
    checkSentenceModel(folder, PROBES);
  } catch (error) {
    throw renamed(error, folder, shown);
  }
}

async function refusePointer(shown: string, path: string): Promise<void> {
  const file = await open(path);
  try {
    const { buffer } = await file.read(Buffer.alloc(LFS_POINTER.length), 0, LFS_POINTER.length, 0);
    if (buffer.toString('latin1') === LFS_POINTER)
      refuseSource(shown, 'the model is only a pointer of Git LFS: run `git lfs pull` in the clone first');
  } finally {
    await file.close();
  }
}

/** Opens the model and lets it compute; it refuses itself what it cannot use. */
async function dimensionsOf(shown: string, folder: string): Promise<number> {
  const embedder = await createOnnxEmbedder(folder, undefined).catch((error: unknown) => {
    throw renamed(error, folder, shown);
  });
  try {
    const [first, second] = await embedder.embed(PROBES).catch((error: unknown) => {
      throw renamed(error, folder, shown);
    });
    if (
      first === undefined ||
      second === undefined ||
      !first.every(Number.isFinite) ||
      first.every((value) => value === 0)
    )
      refuseSource(shown, 'the model gives no numbers for a sentence');
    const cosine = first.reduce((sum, value, index) => sum + value * (second[index] ?? 0), 0);
    if (!(cosine < 0.9999))
      refuseSource(
        shown,
        'the model gives the same vector for different sentences: does its tokenizer.json belong to it?',
      );
    return first.length;
  } finally {
    await embedder.close();
  }
}

/** The same error with the name of the source in place of the temporary folder. */
function renamed(error: unknown, folder: string, shown: string): unknown {
  if (!(error instanceof AppError)) return error;
  const message = error.message.replaceAll(`embedder onnx:${folder}`, shown).replaceAll(folder, shown);
  return new AppError('bad_request', {
    message: message.startsWith(shown) ? message : `${shown}: ${message}`,
  });
}
