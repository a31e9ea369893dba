import { z } from 'zod';
import { MEMORY_STORE_LIMITS } from '../../core/memory-limits.ts';
import { matchingPart } from '../memory/search/matching-part.ts';

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
  link: z.string().optional().describe('The conversation from this turn on, at the memory backend.'),
});

/** A long turn is shortened to the part that fits the query best. */
export function shortenedTurn(turn: z.output<typeof foundTurn>, query: string): z.output<typeof foundTurn> {
  return turn.content.length <= MEMORY_STORE_LIMITS.resultLength
    ? turn
    : {
        ...turn,
        content: matchingPart(turn.content, query, MEMORY_STORE_LIMITS.resultLength),
        truncated: true,
      };
}

/** Time, speaker and conversation. */
export function turnHeading(turn: z.output<typeof foundTurn>): string {
  const { createdAt, speaker = turn.role, sessionId, supersededBy } = turn;
  const later = supersededBy === undefined ? '' : `, replaced by turn ${supersededBy}`;
  return `${createdAt} ${speaker} (turn ${turn.seq} of session ${sessionId}${later})`;
}
