import { LIMITS } from '../../core/limits.ts';
import { answersOf } from '../../server/workers/process-view.ts';
import { defineEndpoint, sendJson } from '../endpoint.ts';

/**
 * The requests whose responses have not ended, oldest first, with the access-log fields known so far; at most
 * `LIMITS.listedTasks` of each process. With workers, `worker` names the process.
 */
export const openRequests = defineEndpoint({
  path: '/api/requests/open',
  methods: ['GET'],
  async handle(_request, reply, { gateway, redactor }) {
    const each = await answersOf(gateway.processes, async (process) => {
      const { requests, total } = await process.openRequests();
      const worker = process.name === undefined ? {} : { worker: process.name };
      return { total, requests: requests.map((request) => ({ ...worker, ...request })) };
    });
    const requests = each
      .flatMap((one) => one.requests)
      .sort((a, b) => a.startedAt - b.startedAt)
      .slice(0, LIMITS.listedTasks)
      .map(({ startedAt, ...request }) => ({ ...request, startedAt: new Date(startedAt).toISOString() }));
    const total = each.reduce((sum, one) => sum + one.total, 0);
    return sendJson(reply, redactor().value({ total, requests }));
  },
});
