import { defineEndpoint, shows } from '../endpoint.ts';
import { overviewFor, overviewOf } from '../overview.ts';
import { statusPage as render, STATUS_STYLE } from '../status-page.ts';
import { fieldsWithoutContents } from '../without-contents.ts';

/** Requests on the page; `/api/requests` has all that are kept. */
const SHOWN = 20;

/** The state of the gateway as a page without scripts. */
export const statusPage = defineEndpoint({
  path: '/ui/status',
  methods: { GET: shows('viewer') },
  async handle(_request, reply, admin, call) {
    const redactor = admin.redactor();
    await admin.gateway.requests.update();
    const recent = admin.gateway.requests
      .list(SHOWN)
      .reverse()
      .map((request) =>
        redactor.value(call.may('operator') ? request : fieldsWithoutContents(request, admin)),
      );
    return reply
      .type('text/html; charset=utf-8')
      .send(render(overviewFor(call, await overviewOf(admin)), recent));
  },
});

export const statusStyle = defineEndpoint({
  path: '/ui/status.css',
  methods: { GET: shows('anyone') },
  handle: (_request, reply) => reply.type('text/css; charset=utf-8').send(STATUS_STYLE),
});
