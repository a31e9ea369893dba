import { defineEndpoint, shows } from '../endpoint.ts';

export const root = defineEndpoint({
  path: '/',
  methods: { GET: shows('anyone') },
  handle: (_request, reply) => reply.redirect('/ui', 308),
});
