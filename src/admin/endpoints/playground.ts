import { LIMITS } from '../../core/limits.ts';
import { defineEndpoint, sendJson, sendProblem } from '../endpoint.ts';
import { readPlaygroundRequest, sendToGateway } from '../playground.ts';

/**
 * Sends a request to one of this gateway's own ports, as any client could, so that pages need no CORS there. Body:
 * `{port, method, path, headers, body}`. The response is streamed as `application/octet-stream`; its status and headers
 * are in `x-gateway-status` and `x-gateway-headers` (JSON, base64). A response without these headers comes from the
 * admin server itself.
 */
export const playground = defineEndpoint({
  path: '/api/playground/send',
  methods: { POST: { role: 'operator', audit: false } },
  isSlow: true,
  async handle(request, reply, admin, call) {
    const asked = readPlaygroundRequest(request.body, admin.gateway.listeners);
    if ('problem' in asked) return sendJson(reply.code(400), { error: { message: asked.problem } });
    if (admin.streams.size >= LIMITS.adminStreams)
      return sendProblem(reply, 503, `${LIMITS.adminStreams} streams are open already: close one of them`);
    const answer = await sendToGateway(asked, reply.raw, (stream) =>
      admin.streams.add(stream, call.isStillAllowed),
    );
    if ('problem' in answer) return sendJson(reply.code(502), { error: { message: answer.problem } });
    return reply
      .headers({
        'content-type': 'application/octet-stream',
        'x-gateway-status': String(answer.status),
        'x-gateway-headers': Buffer.from(JSON.stringify(answer.headers)).toString('base64'),
      })
      .send(answer.body);
  },
});
