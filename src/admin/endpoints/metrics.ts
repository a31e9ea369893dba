import { textAnswer } from '../../server/observe/metrics/answer.ts';
import { defineEndpoint, type Endpoint, shows } from '../endpoint.ts';

const at = (path: string): Endpoint =>
  defineEndpoint({
    path,
    methods: { GET: shows('viewer') },
    async handle(request, reply, { gateway }) {
      const { headers, body } = await textAnswer(request.headers, await gateway.renderMetrics());
      return reply.headers(headers).send(body);
    },
  });

/** The metrics of the scrape address. */
export const metrics = at('/metrics');

/** The same for the pages: a gateway that serves them (`ui`) may have a route of its own for `/metrics`. */
export const pageMetrics = at('/api/metrics');
