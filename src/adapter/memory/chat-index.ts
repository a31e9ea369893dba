import type { Backend } from './documents.ts';
import { searchable } from './embed/embedder.ts';
import { chatMessageId, workspaceId } from './ids.ts';
import type { NewEntity, Relation, Turn } from './store.ts';

/**
 * Indexes a stored turn for `search_knowledge`. Only with MEMORY_INDEX_CHAT, because agents that recall and repeat
 * texts would otherwise fill the store with copies. The turn is already durable, so a failure here loses no data. It may be
 * deleted while its vector is computed; then nothing is stored.
 */
export async function indexTurn(
  { store, embedder }: Backend,
  turn: Turn,
  signal?: AbortSignal,
): Promise<void> {
  if (turn.content.trim() === '') return;
  const [embedding] = embedder.isImmediate ? await embedder.embed([turn.content], signal) : [];
  const { session, message, belongs } = indexedTurn(turn, searchable(embedding));
  await store.putEntities([session, message], [belongs], embedder.id, turn.id);
}

/** The entities of a turn and of its session. */
export function indexedTurn(
  turn: Turn,
  embedding: Float32Array | undefined,
): { readonly session: NewEntity; readonly message: NewEntity; readonly belongs: Relation } {
  const session: NewEntity = {
    id: workspaceId('session', turn.sessionId),
    name: turn.sessionId,
    type: 'workspace',
    content: '',
    metadata: { sessionId: turn.sessionId, origin: 'chat' },
    embedding: undefined,
    searchText: '',
  };
  const message: NewEntity = {
    id: chatMessageId(turn.id),
    name: `${turn.role} in ${turn.sessionId}, turn ${turn.seq}`,
    type: 'chat_message',
    content: turn.content,
    metadata: {
      sessionId: turn.sessionId,
      agentId: turn.agentId,
      role: turn.role,
      turnId: turn.id,
      createdAt: turn.createdAt,
    },
    embedding,
    searchText: turn.content,
    storedAt: turn.createdAt,
  };
  return {
    session,
    message,
    belongs: { fromId: message.id, toId: session.id, relationType: 'BELONGS_TO', weight: 1 },
  };
}
