import { z } from 'zod';
import { MEMORY_API_LIMITS as LIMITS } from '../../../../core/memory-limits.ts';
import { ROLES } from '../../store.ts';
import { defineEndpoint, sessionId } from '../endpoint.ts';
import { MemoryError } from '../memory-error.ts';

const turn = z
  .strictObject({
    sessionId: sessionId.optional(),
    conversationId: sessionId.optional(),
    role: z.enum(ROLES),
    content: z.string().min(1),
    agentId: z.string().min(1).max(LIMITS.nameLength).optional(),
  })
  .refine(({ sessionId: id, conversationId: alias }) => (id ?? alias) !== undefined, {
    path: ['sessionId'],
    message: 'expected the id of the chat thread (or `conversationId`)',
  })
  .refine(
    ({ sessionId: id, conversationId: alias }) => id === undefined || alias === undefined || id === alias,
    { path: ['conversationId'], message: 'is another name for `sessionId`: use only one of them' },
  );

/** Stores one turn; answers when it is on disk. `Idempotency-Key` makes a retry harmless (draft-ietf-httpapi-idempotency-key-header). */
export const chat = defineEndpoint({
  method: 'POST',
  path: '/chat',
  body: turn,
  async run({ body, headers, memory }) {
    const bytes = Buffer.byteLength(body.content);
    if (bytes > LIMITS.turnBytes) {
      throw new MemoryError(
        'body_too_large',
        `\`content\` has ${bytes} bytes, the maximum is ${LIMITS.turnBytes}: store it as a document with ingest_document`,
      );
    }
    const { turn: stored, deduplicated } = await memory.store.appendTurn({
      sessionId: body.sessionId ?? body.conversationId ?? '',
      agentId: body.agentId ?? oneHeader(headers['x-agent-id'], 'x-agent-id') ?? 'unknown',
      role: body.role,
      content: body.content,
      idempotencyKey: oneHeader(headers['idempotency-key'], 'idempotency-key'),
    });
    await memory.index(stored);
    const { content: _content, ...answer } = stored;
    return { status: deduplicated ? 200 : 201, body: { ...answer, deduplicated } };
  },
});

function oneHeader(value: string | string[] | undefined, name: string): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'string' && /^[\x21-\x7e]{1,200}$/.test(value)) return value;
  throw new MemoryError(
    'memory_invalid',
    `header \`${name}\`: expected 1 to 200 printable characters without spaces`,
  );
}
