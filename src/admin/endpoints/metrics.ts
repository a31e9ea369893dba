import { metricsText } from '../../server/observe/metrics/plain-text.ts';
import { defineEndpoint, shows } from '../endpoint.ts';

/** The metrics of the scrape address, for the pages. */
export const metrics = defineEndpoint({
  path: '/metrics',
  methods: { GET: shows('viewer') },
  async handle(request, reply, { gateway }) {
    const { type, text } = metricsText(request.headers.accept, await gateway.renderMetrics());
    return reply.type(type).send(text);
  },
});
