import { z } from 'zod';
import { membersOf, stringIn } from '../../core/foreign.ts';
import { MEMORY_API_LIMITS, MEMORY_STORE_LIMITS } from '../../core/memory-limits.ts';
import { nonEmpty } from '../../core/schema/mapping.ts';
import { placeOf } from '../memory/place.ts';
import { matchingPart } from '../memory/search/matching-part.ts';
import { defineTool, type SearchKind } from '../tool.ts';
import { foundTurn, shortenedTurn, shownTurn, withSuccessors } from './found-turn.ts';
import { passagesIn, type ShownPassage, structuredPassages, textOfPassages } from './passages-in.ts';
import { oneLine } from './stored-text.ts';
import { withinTokens } from './token-budget.ts';

const place = z.looseObject({
  id: z.string(),
  name: z.string().optional(),
  path: z.string().optional(),
  source: z.string().optional(),
  line: z.int().optional(),
  anchor: z.string().optional(),
  differs: z.array(z.string()).optional(),
});

const result = z.looseObject({
  id: z.string(),
  name: z.string(),
  type: z.string(),
  content: z.string().describe('The text that was found.'),
  score: z.number().describe('Similarity, 0 to 1; compared with minScore.'),
  truncated: z.boolean().optional().describe('Whether the content is shortened.'),
  metadata: z
    .looseObject({})
    .optional()
    .describe('Origin of the text: source, path, title, heading with its anchor, line.'),
  alsoIn: z
    .array(place)
    .optional()
    .describe('Where almost the same text stands; differs has the words that it has instead.'),
  copies: z.int().optional().describe('Number of such places, if there are more.'),
});

/** A passage below its heading path, place and score, and where else it stands. */
function shownResult(found: z.output<typeof result>): ShownPassage {
  const { name, type, score, content, metadata, alsoIn = [], copies } = found;
  const origin = membersOf(metadata);
  const session = stringIn(origin['sessionId']);
  const at = placeOf(origin) ?? (session === undefined ? undefined : `${type} of session ${session}`);
  const places = alsoIn.map((one) => {
    const differs = one.differs === undefined ? '' : ` (there: ${one.differs.join(' ')})`;
    return `${placeOf(one) ?? one.name ?? one.id}${differs}`;
  });
  const more = copies === undefined ? '' : ` and ${copies - places.length} more`;
  const also =
    places.length === 0 ? undefined : oneLine(`Almost the same text is in ${places.join(', ')}${more}.`);
  return { heading: `${name} (${at ?? type}, score ${score})`, note: also, content };
}

const SEARCHES: Readonly<Record<SearchKind, string>> = {
  words:
    'Searches all indexed documents by words and parts of words: ask with words that an answer may contain, as synonyms are not known.',
  meaning: 'Searches all indexed documents by meaning and by words.',
  unknown:
    'Searches all indexed documents: ask with words that an answer may contain, as synonyms may not be known.',
};

export const searchKnowledge = defineTool({
  name: 'search_knowledge',
  title: 'Search knowledge',
  description: (kind) =>
    `${SEARCHES[kind]} Returns the passages that fit best, with a similarity score ` +
    'and their source. The reply also says how many were below minScore, and the best score of all. turns: true adds ' +
    'what was said in earlier conversations, best first, with date and speaker.',
  input: z.strictObject({
    query: nonEmpty.max(MEMORY_STORE_LIMITS.queryLength).describe('What to look for, in natural language.'),
    limit: z.int().min(1).max(MEMORY_STORE_LIMITS.results).default(5).describe('Maximum number of results.'),
    minScore: z
      .number()
      .min(0)
      .max(1)
      .default(0.7)
      .describe('Minimum similarity (0 to 1); lower-scoring results are left out.'),
    maxTokens: z
      .int()
      .min(50)
      .max(100_000)
      .optional()
      .describe('Most tokens of all returned texts together, roughly; the last passage is shortened.'),
    turns: z
      .boolean()
      .optional()
      .describe('Whether to search conversations too; their turns are ranked, without minScore.'),
    asOf: z
      .string()
      .max(40)
      .optional()
      .describe(
        'With turns: true, only turns from before this time; passages are those of now. 2026-01-31T12:00:00Z, or 2026-01-31 for its beginning in UTC.',
      ),
    passagesIn,
  }),
  output: z.looseObject({
    results: z.array(result),
    turns: z
      .array(foundTurn)
      .optional()
      .describe('Turns of conversations, best first; of facts that changed, the latest first.'),
    count: z.int(),
    filtered: z.int().optional().describe('How many candidates were below minScore.'),
    bestScore: z.number().nullish().describe('The best score of all candidates, also of those left out.'),
    hint: z.string().optional(),
  }),
  readOnly: true,
  idempotent: true,
  run: ({ maxTokens: _, passagesIn: __, ...args }, { backend, signal }) =>
    backend.call({
      method: 'POST',
      path: '/search',
      body: args,
      timeout: MEMORY_API_LIMITS.callTimeout,
      signal,
    }),
  shorten(reply, { query, maxTokens }) {
    const results = reply.results.map((found) =>
      found.content.length <= MEMORY_STORE_LIMITS.resultLength
        ? found
        : {
            ...found,
            content: matchingPart(found.content, query, MEMORY_STORE_LIMITS.resultLength),
            truncated: true,
          },
    );
    const turns = reply.turns?.map((turn) => shortenedTurn(turn, query));
    if (maxTokens === undefined) return { ...reply, ...(turns && { turns }), results };
    // Of both, half of it for turns.
    const share = turns === undefined || turns.length === 0 ? maxTokens : Math.floor(maxTokens / 2);
    const kept = withinTokens(results, query, share);
    const left = results.length - kept.length;
    return {
      ...reply,
      ...(turns && { turns: withSuccessors(withinTokens(turns, query, share), turns, query) }),
      results: kept,
      count: kept.length,
      ...(left > 0 && {
        hint: [reply.hint, `${left} more passages do not fit into maxTokens.`].filter(Boolean).join('. '),
      }),
    };
  },
  structured: (reply, { query, passagesIn: where }) => ({
    ...reply,
    results: structuredPassages(reply.results, query, where),
    ...(reply.turns && { turns: structuredPassages(reply.turns, query, where) }),
  }),
  text({ results, turns, hint }, { query, passagesIn: where }) {
    const passages = results.map(shownResult);
    const said = turns?.map(shownTurn);
    return [
      textOfPassages('passage', passages, query, where),
      ...(said === undefined ? [] : [textOfPassages('turn', said, query, where)]),
      ...(hint === undefined ? [] : [oneLine(hint)]),
    ].join('\n\n');
  },
});
