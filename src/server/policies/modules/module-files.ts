import { registerHooks } from 'node:module';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { durationText } from '../../../core/duration.ts';
import { decodedUri } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import { PACKAGE_NAME } from '../../../core/version.ts';
import { fileVersion } from '../../kernel/files/file-version.ts';

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

/** Loads a file (absolute path), or returns it as it was loaded if none of its files have changed since. */
export function loadModule(file: string): LoadedModule {
  const known = latest.get(file);
  if (known !== undefined && [...known.files].every(([path, version]) => fileVersion(path) === version))
    return known;
  watchImports();
  versions += 1;
  const version = String(versions);
  const files = new Map([[file, fileVersion(file)]]);
  filesOf.set(version, files);
  const url = pathToFileURL(file);
  url.searchParams.set(VERSION, version);
  const value = importInTime(url.href).finally(() => filesOf.delete(version));
  const loaded = { files, value };
  latest.set(file, loaded);
  // A file that it lacks is not among those that are compared.
  value.catch(() => latest.get(file) === loaded && latest.delete(file));
  return loaded;
}
let versions = 0;

async function importInTime(url: string): Promise<unknown> {
  const ended = new AbortController();
  try {
    const { default: value }: { readonly default?: unknown } = await Promise.race([
      import(url),
      setTimeout(LIMITS.moduleLoading, undefined, { signal: ended.signal }).then(() => {
        throw new Error(`it was not loaded within ${durationText(LIMITS.moduleLoading)}`);
      }),
    ]);
    return value;
  } finally {
    ended.abort();
  }
}

/** `definePolicy` only has types to say, so files can be loaded where the package is not among those of their folder. */
const DEFINE_POLICY = 'data:text/javascript,export const definePolicy = (policy) => policy;';

/** Gives the imports of a version its query too, so that a changed file is loaded again whoever imports it. */
function watchImports(): void {
  if (isWatching) return;
  isWatching = true;
  registerHooks({
    resolve(specifier, context, next) {
      const version = context.parentURL && versionIn(context.parentURL);
      if (!version) return next(specifier, context);
      const found = resolved(() => next(specifier, context), specifier);
      if (!found.url.startsWith('file:') || found.url.includes('/node_modules/')) return found;
      const url = new URL(found.url);
      const file = fileURLToPath(url);
      filesOf.get(version)?.set(file, fileVersion(file));
      url.searchParams.set(VERSION, version);
      return { ...found, url: url.href };
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

/** What is wrong with a module, with the file and line: `rules.ts:12:5`, as far as they are known. */
export function problemIn(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, name, stack = '' } = error;
  const text = message === '' ? name : message;
  const place = placeIn(stack);
  return place === undefined ? text : `${text} (${place})`;
}

/** Where the code of the gateway itself is. */
const OWN_FOLDER = fileURLToPath(new URL('.', import.meta.url));

/** A place in a stack: a URL, or a path in CommonJS modules. */
const PLACE = /(?:\(|at )(?:file:\/\/)?(\/[^\s?():]+)(?:\?[^\s:)]*)?:(\d+(?::\d+)?)/g;

/** The first place of a stack outside of the gateway, or the file and line that a syntax error begins with. */
function placeIn(stack: string): string | undefined {
  const [, ofSyntaxError] = /^(\/[^\n]+?:\d+)\n/.exec(stack) ?? [];
  if (ofSyntaxError !== undefined) return ofSyntaxError;
  for (const [, file = '', line] of stack.matchAll(PLACE))
    if (!file.startsWith(OWN_FOLDER)) return `${decodedUri(file)}:${line}`;
  return undefined;
}
