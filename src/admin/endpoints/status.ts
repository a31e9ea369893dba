import { defineEndpoint } from '../endpoint.ts';
import { overviewOf } from '../overview.ts';
import { statusPage as render, STATUS_STYLE } from '../status-page.ts';

/** Requests on the page; `/api/requests` has all that are kept. */
const SHOWN = 20;

/** The state of the gateway as a page without scripts. */
export const statusPage = defineEndpoint({
  path: '/ui/status',
  methods: ['GET'],
  async handle(_request, reply, admin) {
    const redactor = admin.redactor();
    await admin.gateway.requests.update();
    const recent = admin.gateway.requests
      .list(SHOWN)
      .reverse()
      .map((request) => redactor.value(request));
    return reply.type('text/html; charset=utf-8').send(render(await overviewOf(admin), recent));
  },
});

export const statusStyle = defineEndpoint({
  path: '/ui/status.css',
  methods: ['GET'],
  handle: (_request, reply) => reply.type('text/css; charset=utf-8').send(STATUS_STYLE),
});
