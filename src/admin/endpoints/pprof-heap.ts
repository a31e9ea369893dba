import { defineEndpoint, parameter, sendText } from '../endpoint.ts';
import { profileSeconds } from '../profile/duration.ts';
import { profileHeap } from '../profile/merged-profile.ts';

/** Profiles memory that is allocated within the next `seconds` and still in use afterwards, as gzipped pprof. */
export const pprofHeap = defineEndpoint({
  path: '/debug/pprof/heap',
  methods: ['GET'],
  isSlow: true,
  async handle(request, reply, { gateway }) {
    const left = new AbortController();
    reply.raw.once('close', () => left.abort());
    const profile = await profileHeap({
      processes: gateway.processes,
      seconds: profileSeconds(parameter(request, 'seconds')),
      signal: left.signal,
    });
    if (profile === undefined)
      return sendText(reply, 409, 'another heap profile is running: try again when it has ended\n');
    return reply.type('application/octet-stream').send(Buffer.from(profile));
  },
});
