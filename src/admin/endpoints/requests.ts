import { LIMITS } from '../../core/limits.ts';
import { EVENT_STREAM_HEADERS, EventStream } from '../../core/sse.ts';
import type { RecentRequest } from '../../server/observe/recent-requests.ts';
import { answersOf } from '../../server/workers/process-view.ts';
import { defineEndpoint, parameter, sendJson, sendProblem, shows } from '../endpoint.ts';
import { fieldsWithoutContents } from '../without-contents.ts';

/**
 * The last requests with their access-log fields, oldest first: `limit` of them, or those after the id `after`. With
 * `accept: text/event-stream`, an event stream of them and of every further request.
 */
export const requests = defineEndpoint({
  path: '/api/requests',
  methods: { GET: shows('viewer') },
  isSlow: true,
  async handle(request, reply, admin, call) {
    const { gateway, redactor, streams } = admin;
    const recent = gateway.requests;
    const limit = whole(parameter(request, 'limit')) ?? LIMITS.recentRequests;
    const accepts = request.headers.accept ?? '';
    const resumed = request.headers['last-event-id'];
    const after =
      whole(parameter(request, 'after') ?? (typeof resumed === 'string' ? resumed : undefined)) ?? 0;
    await recent.update();
    const clean = (entry: RecentRequest): unknown =>
      redactor().value(call.may('operator') ? entry : fieldsWithoutContents(entry, admin));
    if (!accepts.includes('text/event-stream'))
      return sendJson(reply, { requests: recent.list(limit, after).map(clean) });
    if (streams.size >= LIMITS.adminStreams)
      return sendProblem(reply, 503, `${LIMITS.adminStreams} streams are open already: close one of them`);
    const stream = new EventStream();
    let isPaused = false;
    const remove = streams.add(stream, call.isStillAllowed);
    // A slow reader misses requests; the ids show which.
    const leave = recent.watch((entry) => {
      if (!isPaused) stream.send(JSON.stringify(clean(entry)), 'request');
    });
    stream.owner = {
      pressure: (paused) => {
        isPaused = paused;
      },
      closed: () => {
        leave();
        remove();
      },
    };
    reply.hijack();
    const { raw } = reply;
    for (const [name, value] of Object.entries(reply.getHeaders()))
      if (value !== undefined) raw.setHeader(name, value);
    raw.writeHead(200, EVENT_STREAM_HEADERS);
    stream.attach(raw);
    for (const entry of recent.list(limit, after)) stream.send(JSON.stringify(clean(entry)), 'request');
    return undefined;
  },
});

function whole(text: string | undefined): number | undefined {
  return /^\d{1,15}$/.test(text ?? '') ? Number(text) : undefined;
}

/**
 * The requests whose responses have not ended, oldest first, with the access-log fields known so far; at most
 * `LIMITS.listedTasks` of each process. With workers, `worker` names the process.
 */
export const openRequests = defineEndpoint({
  path: '/api/requests/open',
  methods: { GET: shows('viewer') },
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
