import type { CallerView } from '../../core/caller-view.ts';
import { defineEndpoint, sendJson, shows } from '../endpoint.ts';

/** Who calls, and what they may do, for the pages: `CallerView` (`core/caller-view.ts`). */
export const me = defineEndpoint({
  path: '/api/me',
  methods: { GET: shows('anyone') },
  handle: (_request, reply, _admin, { caller: { actor, role, title, signOut, isDirect, reason } }) =>
    sendJson(reply, {
      actor: { kind: actor.kind, ...(actor.name !== undefined && { name: actor.name }) },
      role: role ?? null,
      isOnGateway: isDirect !== true,
      ...(title !== undefined && { title }),
      ...(signOut !== undefined && { signOut }),
      ...(reason !== undefined && { reason }),
    } satisfies CallerView),
});
