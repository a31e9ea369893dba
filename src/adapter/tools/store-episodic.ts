import { z } from 'zod';
import { MEMORY_API_LIMITS as LIMITS } from '../../core/memory-limits.ts';
import { defineTool } from '../tool.ts';
import { oneLine } from './stored-text.ts';

export const storeEpisodic = defineTool({
  name: 'store_episodic',
  title: 'Store a conversation turn',
  description:
    'Stores one turn of a conversation in the chat history. The turn is on disk when the call returns.',
  input: z.strictObject({
    sessionId: z.string().min(1).max(LIMITS.nameLength).describe('Id of the chat thread.'),
    role: z.enum(['user', 'assistant', 'system']).describe('Author of the message.'),
    content: z
      .string()
      .min(1)
      .max(LIMITS.turnBytes)
      .describe('The text of the message, at most 64 KiB in UTF-8.'),
  }),
  output: z.looseObject({
    id: z.string(),
    sessionId: z.string(),
    role: z.string(),
    createdAt: z.string().describe('When it was stored (RFC 3339).'),
  }),
  readOnly: false,
  idempotent: false,
  run: (args, { backend, agentId, signal }) =>
    backend.call({
      method: 'POST',
      path: '/chat',
      body: { ...args, agentId },
      write: { repeatable: false },
      timeout: LIMITS.callTimeout,
      signal,
    }),
  text: ({ id, sessionId, role, createdAt }) =>
    `Stored turn ${id} (${role}) of session ${oneLine(sessionId)} at ${createdAt}.`,
});
