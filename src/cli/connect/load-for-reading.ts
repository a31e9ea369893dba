import type { Environment } from '../../core/yaml/env.ts';
import { type LoadedConfig, loadConfigText } from '../../server/config/load.ts';

/** Stands in for a variable that is not set: valid as a key, a name or the host of a URL, and unlikely in a real file. */
export const PLACEHOLDER = 'unset-variable';

/**
 * Parses a configuration whose variables need not all be set: for commands that read what is independent of their values.
 * `unset` are the names of those that are not.
 */
export function loadForReading(
  text: string,
  file: string,
  env: Environment,
): { readonly loaded: LoadedConfig; readonly unset: readonly string[] } {
  const loaded = loadConfigText(text, file, env);
  const unset = loaded.diagnostics
    .filter(({ code }) => code === 'AGW0004')
    .flatMap(({ range }) => (range === undefined ? [] : [text.slice(range.start.offset, range.end.offset)]))
    .flatMap((written) => [...written.matchAll(/\$\{?([A-Za-z_]\w*)/g)].flatMap(([, name]) => name ?? []));
  if (unset.length === 0) return { loaded, unset };
  const placeholders = Object.fromEntries(unset.map((name) => [name, PLACEHOLDER]));
  return { loaded: loadConfigText(text, file, { ...env, ...placeholders }), unset: [...new Set(unset)] };
}
