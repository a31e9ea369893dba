import { defineEndpoint } from '../endpoint.ts';

export const root = defineEndpoint({
  path: '/',
  methods: ['GET'],
  handle: (_request, reply) => reply.redirect('/ui', 308),
});
