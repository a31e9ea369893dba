import { decodedUri } from '../../core/foreign.ts';
import { EVENT_STREAM_HEADERS } from '../../core/sse.ts';
import { openTraceStream } from '../../server/observe/trace-stream.ts';
import { defineEndpoint, parameter, sendText } from '../endpoint.ts';

/** It shows what clients send and get. */
const ARM = { role: 'operator', audit: 'trace.arm' } as const;

/**
 * Streams a trace of the next request; with `count=n`, of the next n; with `follow=true`, of every request. Upstream's
 * tool sends POST.
 */
export const debugTrace = defineEndpoint({
  path: '/debug/trace',
  methods: { GET: ARM, POST: ARM },
  isSlow: true,
  handle(request, reply, { gateway, streams }, call) {
    const { search } = new URL(request.url, 'http://localhost');
    call.changed({ detail: search === '' ? 'the next request' : decodedUri(search.slice(1)) });
    const opened = openTraceStream(gateway.traceSubscribers, {
      expression: parameter(request, 'expression'),
      follow: parameter(request, 'follow') === 'true',
      count: parameter(request, 'count'),
    });
    if ('text' in opened) return sendText(reply, opened.status, opened.text);
    const { stream } = opened;
    const entry = { end: () => void stream.destroy(), queued: () => stream.queued };
    stream.once('close', streams.add(entry, call.isStillAllowed));
    return reply.headers(EVENT_STREAM_HEADERS).send(stream);
  },
});
