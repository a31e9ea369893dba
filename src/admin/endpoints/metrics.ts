import { contentType } from '../../server/observe/operator-servers.ts';
import { defineEndpoint } from '../endpoint.ts';

/** The metrics of the scrape address, for the pages. */
export const metrics = defineEndpoint({
  path: '/metrics',
  methods: ['GET'],
  async handle(request, reply, { gateway }) {
    return reply.type(contentType(request.headers.accept)).send(await gateway.renderMetrics());
  },
});
