import { textAnswer } from '../../server/observe/metrics/answer.ts';
import { defineEndpoint, shows } from '../endpoint.ts';

/** The metrics of the scrape address, for the pages. */
export const metrics = defineEndpoint({
  path: '/metrics',
  methods: { GET: shows('viewer') },
  async handle(request, reply, { gateway }) {
    const { headers, body } = await textAnswer(request.headers, await gateway.renderMetrics());
    return reply.headers(headers).send(body);
  },
});
