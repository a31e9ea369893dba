import { defineEndpoint, sendText } from '../endpoint.ts';

/** Where the memory in use was allocated, as gzipped pprof. */
export const pprofHeap = defineEndpoint({
  path: '/debug/pprof/heap',
  methods: ['GET'],
  async handle(_request, reply, { heap }) {
    const profile = await heap.profile();
    if (profile === undefined) return sendText(reply, 503, 'the admin server is closing\n');
    return reply.type('application/octet-stream').send(Buffer.from(profile));
  },
});
