// Imports and deletions in the loop of kill-harness.ts: what the victim does and finds, and what must be there.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Store } from '../../../src/adapter/memory/store.ts';

const TURNS = 3;
const SESSION = 'batch ';

/** A batch that was stored or, if it is odd, deleted again afterwards. */
export type BatchLine = { readonly kind: 'imported' | 'erased'; readonly batch: number };

/** By batch: its turns, and the observations of its entity. */
export type FoundBatches = Readonly<Record<string, readonly [turns: number, observations: number]>>;

const marker = (batch: number): string => `marker${batch}x`;

export async function importAndErase(
  store: Store,
  start: number,
  say: (line: BatchLine) => void,
): Promise<never> {
  for (let batch = start; ; batch++) {
    const turns = Array.from({ length: TURNS }, (_, part) => ({
      id: `${batch}-${part}`,
      sessionId: `${SESSION}${batch}`,
      agentId: 'a',
      role: 'user' as const,
      content: `${marker(batch)} ${'text '.repeat(200)}`,
      createdAt: '2026-01-01T00:00:00.000Z',
    }));
    const entity = { name: `${SESSION}${batch}`, entityType: 't', observations: [marker(batch)] };
    await store.importBatch({ entities: [entity], relations: [], turns, documents: [] });
    say({ kind: 'imported', batch });
    if (batch % 2 === 0) continue;
    await store.erase({ about: marker(batch) }, {});
    say({ kind: 'erased', batch });
  }
}

export async function foundBatches(store: Store): Promise<FoundBatches> {
  const found: Record<string, [number, number]> = {};
  const at = (name: string): [number, number] => (found[name.slice(SESSION.length)] ??= [0, 0]);
  for (let cursor: string | undefined; ; ) {
    const page = await store.sessions({ limit: 5000, cursor });
    for (const { sessionId, turns } of page.sessions)
      if (sessionId.startsWith(SESSION)) at(sessionId)[0] = turns;
    cursor = page.nextCursor ?? undefined;
    if (cursor === undefined) break;
  }
  for (let cursor: string | undefined; ; ) {
    const page = await store.agentGraph({ cursor });
    for (const { name, observations } of page.entities) at(name)[1] = observations.length;
    cursor = page.nextCursor ?? undefined;
    if (cursor === undefined) return found;
  }
}

/** What was acknowledged of batches. */
export class ExpectedBatches {
  readonly #imported = new Set<number>();
  readonly #erased = new Set<number>();

  take({ kind, batch }: BatchLine): void {
    (kind === 'imported' ? this.#imported : this.#erased).add(batch);
  }

  /** Each batch is there completely or not at all, and every acknowledged import and deletion has happened. */
  problems(found: FoundBatches): string[] {
    const problems: string[] = [];
    for (const [name, [turns, observations]] of Object.entries(found)) {
      const isWhole = turns === TURNS && observations === 1;
      if (!isWhole && (turns > 0 || observations > 0))
        problems.push(`batch ${name} has ${turns} turns and ${observations} observations`);
    }
    for (const batch of this.#imported) {
      const isThere = (found[batch]?.[0] ?? 0) > 0;
      // A deletion may have happened that was not acknowledged.
      if (!isThere && batch % 2 === 0) problems.push(`batch ${batch} was acknowledged and is lost`);
      if (isThere && this.#erased.has(batch)) problems.push(`batch ${batch} was deleted and is there again`);
    }
    return problems;
  }

  /** No file contains what was acknowledged as deleted. */
  bytesProblems(folder: string): string[] {
    return readdirSync(folder).flatMap((name) => {
      const text = readFileSync(join(folder, name), 'latin1');
      return [...text.matchAll(/marker(\d+)x/g)]
        .filter(([, batch]) => this.#erased.has(Number(batch)))
        .map(([deleted]) => `${name} contains ${deleted}, which was deleted`);
    });
  }
}
