import type { FastifyRequest } from 'fastify';
import type { AuditView } from '../../core/audit-view.ts';
import { AUDIT_OUTCOMES } from '../../core/audit-view.ts';
import { LIMITS } from '../../core/limits.ts';
import { auditOf } from '../../server/audit/audit.ts';
import { shownEvent } from '../../server/audit/event.ts';
import type { AuditQuery } from '../../server/audit/table.ts';
import { defineEndpoint, sendProblem, shows } from '../endpoint.ts';
import { answer, InvalidParameter, limitOf, parametersOf, TIMES, timesOf } from '../record-query.ts';

/**
 * Who has changed what, newest first: `{events, next, kept}` (`core/audit-view.ts`). Without a database, the last
 * `LIMITS.auditRecent` events of this process.
 */
export const audit = defineEndpoint({
  path: '/api/audit',
  methods: { GET: shows('operator') },
  handle(request, reply, { served }) {
    const found = auditOf.get(served().runtime.settings);
    if (found === undefined) return sendProblem(reply, 409, 'the gateway keeps no events');
    return answer(reply, async (): Promise<AuditView> => {
      const { events, next } = await found.list(queryOf(request));
      return { events: events.map(shownEvent), next: next ?? null, kept: found.isKept };
    });
  },
});

/** @throws InvalidParameter */
function queryOf(request: FastifyRequest): AuditQuery {
  const given = parametersOf(request, ['action', 'actor', 'outcome', ...TIMES, 'limit', 'after']);
  const outcome = given.get('outcome');
  if (outcome !== undefined && !AUDIT_OUTCOMES.some((each) => each === outcome))
    throw new InvalidParameter(`outcome is not one: expected ${AUDIT_OUTCOMES.join(', ')}`);
  const after = given.get('after');
  if (after !== undefined && !/^\d{1,15}$/.test(after))
    throw new InvalidParameter('after is not the `next` of another page');
  return {
    ...timesOf(given, 0),
    action: given.get('action'),
    actor: given.get('actor'),
    outcome,
    limit: limitOf(given.get('limit'), LIMITS.auditPage),
    after: after === undefined ? undefined : Number(after),
  };
}
