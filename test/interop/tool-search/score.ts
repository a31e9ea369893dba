import type { Task } from './tasks.ts';

/** Finds tools: resolves to their names, best first. */
export type Search = (query: string) => Promise<readonly string[]>;

export interface Score {
  readonly tasks: number;
  /** For how many tasks a right tool was the first, or among the first five or ten. */
  readonly first1: number;
  readonly first5: number;
  readonly first10: number;
  /** Tasks without a right tool among the first five. */
  readonly misses: readonly Miss[];
}

interface Miss extends Task {
  /** Place of the first right tool, counted from one; undefined if none was found. */
  readonly rank: number | undefined;
  /** The first five names. */
  readonly found: readonly string[];
}

/** Searches for every task, one after the other. */
export async function scoreSearch(tasks: readonly Task[], search: Search): Promise<Score> {
  const ranked: Miss[] = [];
  for (const task of tasks) {
    const names = await search(task.query);
    const at = names.findIndex((name) => task.tool.includes(name));
    ranked.push({ ...task, rank: at < 0 ? undefined : at + 1, found: names.slice(0, 5) });
  }
  const among = (most: number) => (miss: Miss) => miss.rank !== undefined && miss.rank <= most;
  return {
    tasks: tasks.length,
    first1: ranked.filter(among(1)).length,
    first5: ranked.filter(among(5)).length,
    first10: ranked.filter(among(10)).length,
    misses: ranked.filter((miss) => !among(5)(miss)),
  };
}
