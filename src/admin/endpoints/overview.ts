import { defineEndpoint, sendJson, shows } from '../endpoint.ts';
import { overviewFor, overviewOf } from '../overview.ts';

/** Gateways, routes, backends and their state in one response. */
export const overview = defineEndpoint({
  path: '/api/overview',
  methods: { GET: shows('viewer') },
  handle: async (_request, reply, admin, call) => sendJson(reply, overviewFor(call, await overviewOf(admin))),
});
