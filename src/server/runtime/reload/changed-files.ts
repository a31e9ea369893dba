import { LIMITS } from '../../../core/limits.ts';
import type { Environment } from '../../../core/yaml/env.ts';
import { fileVersion } from '../../kernel/files/file-version.ts';
import type { Runtime } from '../runtime.ts';

/** What a configuration has been read from, or is read from again, beside its own file. */
export const filesOf = ({ files, reloadedFiles }: Pick<Runtime, 'files' | 'reloadedFiles'>): string[] => [
  ...files,
  ...reloadedFiles.keys(),
];

/** Which files have changed, as the audit says it: by name only, because what they contain is a secret. */
export class ChangedFiles {
  /** Versions of the files as they were last seen. */
  readonly #versions = new Map<string, string>();

  /** Those of these files that have changed since the last call with them. */
  of(files: readonly string[]): string[] {
    const changed: string[] = [];
    for (const file of new Set(files)) {
      const version = fileVersion(file);
      const before = this.#versions.get(file);
      if (before !== undefined && before !== version) changed.push(file);
      this.#versions.set(file, version);
    }
    return changed;
  }
}

/** Names of the variables whose values differ; undefined if there are none. */
export function changedNames(before: Environment, after: Environment): string | undefined {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  const changed = [...names].filter((name) => before[name] !== after[name]);
  return changed.length === 0 ? undefined : changed.slice(0, LIMITS.reloadNames).join(', ');
}
