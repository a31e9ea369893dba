import { z } from 'zod';
import { MEMORY_STORE_LIMITS } from '../../../../core/memory-limits.ts';
import type { Memory } from '../../memory.ts';
import { search as searchStore } from '../../search/search.ts';
import { searchTurns } from '../../search/turns.ts';
import { defineEndpoint, entityType } from '../endpoint.ts';
import { shownTurns } from './shown-turns.ts';
import { time } from './turns.ts';

/** Documents are replaced when they change; only turns stay. */
const TURNS_ONLY =
  'concerns turns only, as documents have no earlier versions here: add `turns: true`, or leave it out';
const PRESENT = '`results` are passages as they are now: `asOf` concerns `turns` only';
const NO_PAST = 'No turn from before `asOf` fits: leave it out to search all turns';

/** Similarity search over all indexed entities (spec, "search_knowledge"). */
export const search = defineEndpoint({
  method: 'POST',
  path: '/search',
  body: z
    .strictObject({
      query: z.string().min(1).max(MEMORY_STORE_LIMITS.queryLength),
      limit: z.int().min(1).max(MEMORY_STORE_LIMITS.results).default(5),
      minScore: z.number().min(0).max(1).default(0.7),
      types: z.array(entityType).min(1).optional(),
      debug: z.boolean().default(false),
      /** Also what was said in conversations. */
      turns: z.boolean().default(false),
      /** Only what was said before this time. */
      asOf: time,
    })
    .refine(({ turns, asOf }) => turns || asOf === undefined, { path: ['asOf'], message: TURNS_ONLY }),
  run: async ({ body: { turns, asOf, ...request }, memory, signal }) => {
    const reading = firstSync(memory);
    const found = await searchStore(memory, { ...request, isTurnSearch: turns }, signal);
    const said = turns
      ? { turns: await shownTurns(memory.store, await searchTurns(memory, { ...request, asOf }, signal)) }
      : {};
    const past = asOf !== undefined && said.turns?.length === 0 ? NO_PAST : undefined;
    // The sync explains missing results better than a hint about what is stored so far.
    const unread = found.count === 0 ? folderProblem(memory) : undefined;
    const present = asOf !== undefined && found.count > 0 ? PRESENT : undefined;
    const hint =
      reading ?? [found.hint, present, past, unread].filter((part) => part !== undefined).join('. ');
    return { body: { ...found, ...said, ...(hint === '' ? {} : { hint }) } };
  },
});

/** A notice while the first sync is running, because results may be missing. */
function firstSync({ isReady, sync }: Memory): string | undefined {
  const { state, scanned, total } = sync.status();
  if (isReady || state !== 'running') return undefined;
  const far = total === 0 ? '' : ` (${scanned} of ${total})`;
  return `the first sync of the documents is still running${far}: search again later for missing results`;
}

/** Why documents of the folder may be missing, as the last sync found. */
function folderProblem({ sync }: Memory): string | undefined {
  const problem = sync.status().errors.find(({ path }) => path === '');
  return problem === undefined ? undefined : `Of the last sync: ${problem.message}`;
}
