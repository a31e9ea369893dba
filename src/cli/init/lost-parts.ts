import type { LeftOut } from './imported.ts';

/** What has no counterpart in a file. Parts with the same key and reason are one line. */
export class LostParts {
  readonly #source: string;
  readonly #lines = new Map<
    string,
    { key: string; reason: string; owners: Set<string>; isWarning: boolean }
  >();

  constructor(source: string) {
    this.#source = source;
  }

  /** `key` of `owner`, such as a model. A lost limit or check is a warning, because people rely on it. */
  add(key: string, reason: string, { owner = '', isWarning = false } = {}): void {
    // That of everything is a line of its own.
    const id = `${key}\n${reason}\n${owner === ''}`;
    const line = this.#lines.get(id) ?? { key, reason, owners: new Set(), isWarning };
    if (owner !== '') line.owners.add(owner);
    this.#lines.set(id, line);
  }

  /** Warnings first. */
  get lines(): LeftOut[] {
    const all = [...this.#lines.values()].map(({ key, reason, owners, isWarning }) => ({
      what: `\`${key}\`${owners.size > 0 ? ` of ${[...owners].join(', ')}` : ''} in ${this.#source}`,
      reason,
      ...(isWarning && { isWarning }),
    }));
    return [...all.filter(({ isWarning }) => isWarning), ...all.filter(({ isWarning }) => !isWarning)];
  }
}
