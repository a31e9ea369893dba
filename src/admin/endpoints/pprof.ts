import { defineEndpoint, parameter, sendText, shows } from '../endpoint.ts';
import { cpuParameters, profileSeconds } from '../profile/duration.ts';
import { profileCpu, profileHeap } from '../profile/merged-profile.ts';

/** A CPU profile as raw pprof. Parameters that are not whole numbers in their range count as absent, as in upstream. */
export const pprofProfile = defineEndpoint({
  path: '/debug/pprof/profile',
  methods: { GET: shows('operator') },
  isSlow: true,
  async handle(request, reply, { gateway }) {
    // The specified response, which tools interpret as "not supported".
    if (process.platform !== 'linux') return reply.code(404).send();
    const left = new AbortController();
    reply.raw.once('close', () => left.abort());
    const { seconds, frequency } = cpuParameters(
      parameter(request, 'seconds'),
      parameter(request, 'frequency'),
    );
    const profile = await profileCpu(
      { processes: gateway.processes, seconds, signal: left.signal },
      frequency,
    );
    if (profile === undefined)
      return sendText(reply, 409, 'another CPU profile is running: try again when it has ended\n');
    return reply.type('application/octet-stream').send(Buffer.from(profile));
  },
});

/** Profiles memory that is allocated within the next `seconds` and still in use afterwards, as gzipped pprof. */
export const pprofHeap = defineEndpoint({
  path: '/debug/pprof/heap',
  methods: { GET: shows('operator') },
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
