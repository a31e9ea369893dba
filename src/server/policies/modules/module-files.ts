import { realpathSync } from 'node:fs';
import { createRequire, registerHooks } from 'node:module';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { durationText } from '../../../core/duration.ts';
import { decodedUri } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import { PACKAGE_NAME } from '../../../core/version.ts';
import { fileVersion } from '../../kernel/files/file-version.ts';
import { runForeign } from '../../kernel/foreign-code.ts';

/** A file with a policy, as it was loaded. */
export interface LoadedModule {
  /** Absolute paths of the file and of those that it imports, outside of packages. Complete once it is loaded. */
  readonly files: ReadonlyMap<string, string>;
  /** Its default export. Rejects if it cannot be loaded. */
  readonly value: Promise<unknown>;
}

/** Query of the URLs of loaded files. Node.js loads each URL once, so a changed file needs another one. */
const VERSION = 'agctl-version';

/** What is loaded, or was last: files that have not changed are not loaded again, whoever asks. */
const latest = new Map<string, LoadedModule>();

/** The files of each version, while its imports are resolved. */
const filesOf = new Map<string, Map<string, string>>();

/**
 * Loads a file (absolute path), or returns it as it was loaded if none of its files have changed since. What its code leaves unhandled is
 * told to `failed`.
 */
export function loadModule(file: string, failed: (error: unknown) => void): LoadedModule {
  const known = latest.get(file);
  if (known !== undefined && [...known.files].every(([path, version]) => fileVersion(path) === version))
    return known;
  watchImports();
  versions += 1;
  const version = String(versions);
  const files = new Map([[file, fileVersion(file)]]);
  filesOf.set(version, files);
  for (const path of known?.files.keys() ?? []) forget(path);
  const value = withinLoading(
    runForeign({ failed }, () => importOf(file, version)),
    'it was not loaded',
  ).finally(() => {
    required(realPathOf(file), files);
    filesOf.delete(version);
  });
  const loaded = { files, value };
  latest.set(file, loaded);
  // A file that it lacks is not among those that are compared.
  value.catch(() => latest.get(file) === loaded && latest.delete(file));
  return loaded;
}
let versions = 0;

async function importOf(file: string, version: string): Promise<unknown> {
  const url = pathToFileURL(realPathOf(file));
  url.searchParams.set(VERSION, version);
  const loaded: { readonly default?: unknown } = await import(url.href);
  return loaded.default;
}

/** Where a file is. Node.js looks this up once for each path, and a link may lead elsewhere since. */
function realPathOf(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    // Importing it says what is wrong.
    return file;
  }
}

/** Limits the time of code that is loaded. @throws Error after `LIMITS.moduleLoading` */
export async function withinLoading<T>(work: Promise<T>, what: string): Promise<T> {
  const ended = new AbortController();
  try {
    return await Promise.race([
      work,
      setTimeout(LIMITS.moduleLoading, undefined, { signal: ended.signal }).then(() => {
        throw new Error(`${what} within ${durationText(LIMITS.moduleLoading)}`);
      }),
    ]);
  } finally {
    ended.abort();
  }
}

/** Files of CommonJS, which Node.js keeps by their path. */
const { cache } = createRequire(import.meta.url);

function forget(file: string): void {
  delete cache[realPathOf(file)];
}

/** Adds the files that a file of CommonJS has required, outside of packages. */
function required(file: string, files: Map<string, string>): void {
  const seen = new Set<string>();
  const add = (path: string): void => {
    if (seen.has(path) || path.includes('/node_modules/')) return;
    seen.add(path);
    if (path !== file) files.set(path, files.get(path) ?? fileVersion(path));
    for (const child of cache[path]?.children ?? []) add(child.filename);
  };
  for (const path of [file, ...files.keys()]) add(path);
}

/** `definePolicy` only has types to say, so files can be loaded where the package is not among those of their folder. */
const DEFINE_POLICY = 'data:text/javascript,export const definePolicy = (policy) => policy;';

/** Gives the imports of a version its query too, so that a changed file is loaded again whoever imports it. */
function watchImports(): void {
  if (isWatching) return;
  isWatching = true;
  registerHooks({
    resolve(specifier, context, next) {
      const own = versionIn(specifier);
      // Whatever a package.json near it says: types are only removed from modules that use `import`.
      if (own) return { ...next(specifier, context), ...formatOf(specifier) };
      const version = context.parentURL && versionIn(context.parentURL);
      if (!version) return next(specifier, context);
      const files = filesOf.get(version);
      const path = relativePath(specifier, context.parentURL);
      const asked = path === undefined ? specifier : pathToFileURL(realPathOf(path)).href;
      const found = resolved(() => next(asked, context), specifier);
      if (!found.url.startsWith('file:') || found.url.includes('/node_modules/')) return found;
      const url = new URL(found.url);
      // The link and where it leads: either may change.
      for (const file of [path, fileURLToPath(url)])
        if (file !== undefined) files?.set(file, fileVersion(file));
      url.searchParams.set(VERSION, version);
      return { ...found, ...formatOf(url.pathname), url: url.href };
    },
  });
}
let isWatching = false;

function resolved<Found>(
  resolve: () => Found,
  specifier: string,
): Found | { url: string; shortCircuit: true } {
  try {
    return resolve();
  } catch (error) {
    if (specifier === `${PACKAGE_NAME}/policy`) return { url: DEFINE_POLICY, shortCircuit: true };
    throw error;
  }
}

function versionIn(url: string): string | null {
  return url.startsWith('file:') ? new URL(url).searchParams.get(VERSION) : null;
}

const formatOf = (path: string): { format?: string } =>
  /\.ts(?:\?|$)/.test(path) ? { format: 'module-typescript' } : {};

/** The path of a file that is imported by a relative one. */
function relativePath(specifier: string, parent: string | undefined): string | undefined {
  return parent !== undefined && /^\.\.?\//.test(specifier)
    ? fileURLToPath(new URL(specifier, parent))
    : undefined;
}

/** What is wrong with a module, with the file and line: `rules.ts:12:5`, as far as they are known. */
export function problemIn(error: unknown): string {
  try {
    if (!(error instanceof Error)) return String(error).slice(0, LIMITS.denialLength);
    const { message, name, stack } = error;
    const text = String(message === '' ? name : message).slice(0, LIMITS.denialLength);
    const place = placeIn(String(stack));
    return place === undefined ? text : `${text} (${place})`;
  } catch {
    // Anything can be thrown, such as a proxy.
    return 'it has thrown something that cannot be shown';
  }
}

/** Where the code of the gateway itself is. */
const OWN_FOLDER = fileURLToPath(new URL('.', import.meta.url));

/** A place in a stack: a URL, or a path in CommonJS modules. */
const PLACE = /(?:\(|at )(?:file:\/\/)?(\/[^\s?():]+)(?:\?[^\s:)]*)?:(\d+(?::\d+)?)/g;

/** The first place of a stack outside of the gateway, or the file and line that a syntax error begins with. */
function placeIn(stack: string): string | undefined {
  const [, ofSyntaxError, line = ''] = /^(?:file:\/\/)?(\/[^\n?]+?)(?:\?[^\n:]*)?(:\d+)\n/.exec(stack) ?? [];
  if (ofSyntaxError !== undefined) return decodedUri(ofSyntaxError) + line;
  for (const [, file = '', at] of stack.matchAll(PLACE))
    if (!file.startsWith(OWN_FOLDER)) return `${decodedUri(file)}:${at}`;
  return undefined;
}
