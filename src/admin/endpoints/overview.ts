import { defineEndpoint, sendJson } from '../endpoint.ts';
import { overviewOf } from '../overview.ts';

/** Gateways, routes, backends and their state in one response. */
export const overview = defineEndpoint({
  path: '/api/overview',
  methods: ['GET'],
  handle: async (_request, reply, admin) => sendJson(reply, await overviewOf(admin)),
});
