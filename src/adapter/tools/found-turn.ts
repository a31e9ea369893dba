import { z } from 'zod';
import { MEMORY_STORE_LIMITS } from '../../core/memory-limits.ts';
import { matchingPart } from '../memory/search/matching-part.ts';
import { excerptOf } from './excerpt.ts';
import type { ShownPassage } from './passages-in.ts';
import { oneLine, quoted } from './stored-text.ts';

/** A turn of a conversation, as tools return it. */
export const foundTurn = z.looseObject({
  seq: z.int(),
  sessionId: z.string(),
  agentId: z.string(),
  role: z.string(),
  content: z.string(),
  createdAt: z.string(),
  truncated: z.boolean().optional().describe('Whether the content is shortened.'),
  speaker: z.string().optional().describe('Who said it: a name, or the role.'),
  score: z.number().optional().describe('By which turns are ranked, 0 to 1.'),
  supersededBy: z.int().optional().describe('The seq of a later turn that replaces this one.'),
  successor: z
    .looseObject({
      seq: z.int(),
      sessionId: z.string(),
      role: z.string(),
      content: z.string(),
      createdAt: z.string(),
    })
    .optional()
    .describe('That later turn, or an excerpt of it, unless it is among the turns.'),
  link: z.string().optional().describe('The conversation from this turn on, at the memory backend.'),
});

type FoundTurn = z.output<typeof foundTurn>;

/** A long turn is shortened to the part that fits the query best, and the one that replaces it to an excerpt. */
export function shortenedTurn(turn: FoundTurn, query: string): FoundTurn {
  const { content, successor } = turn;
  const short =
    content.length <= MEMORY_STORE_LIMITS.resultLength
      ? turn
      : { ...turn, content: matchingPart(content, query, MEMORY_STORE_LIMITS.resultLength), truncated: true };
  return successor === undefined
    ? short
    : { ...short, successor: { ...successor, content: excerptOf(successor.content, query) } };
}

/** Turns of which some were left out: what replaces one stays with it. */
export function withSuccessors(
  kept: readonly FoundTurn[],
  all: readonly FoundTurn[],
  query: string,
): FoundTurn[] {
  const there = new Set(kept.map(({ seq }) => seq));
  return kept.map((turn) => {
    const { supersededBy } = turn;
    if (supersededBy === undefined || there.has(supersededBy)) return turn;
    const later = all.find(({ seq }) => seq === supersededBy);
    if (later === undefined) return turn;
    const { seq, sessionId, role, content, createdAt } = later;
    return { ...turn, successor: { seq, sessionId, role, createdAt, content: excerptOf(content, query) } };
  });
}

/** A turn below its time, speaker and conversation. */
export function shownTurn(turn: FoundTurn): ShownPassage {
  const { createdAt, content, speaker = turn.role, sessionId, supersededBy, successor } = turn;
  const later = supersededBy === undefined ? '' : `, replaced by turn ${supersededBy}`;
  return {
    heading: `${createdAt} ${speaker} (turn ${turn.seq} of session ${sessionId}${later})`,
    note:
      successor &&
      `Replaced ${successor.createdAt} in session ${oneLine(successor.sessionId)} by:\n${quoted(successor.content)}\n\nThe turn itself:`,
    content,
  };
}
