import { isRecord, jsonIn, membersOf, textIn } from '../../core/foreign.ts';
import { type AskedTool, toolCallers } from '../../server/runtime/callers/tool-callers.ts';
import { defineEndpoint, sendJson, sendProblem, shows } from '../endpoint.ts';

/**
 * Who may list and call a tool, by the rules of its route and backend: `{gateway, route, target, tool, claims?}` returns `ToolCallers`
 * (`core/tool-callers.ts`). `route`: the `key` of the route in `/api/overview`; `tool`: its name at the target; `claims`: those of a token to judge.
 */
export const mcpCallers = defineEndpoint({
  path: '/api/mcp/callers',
  methods: { POST: shows('viewer') },
  async handle(request, reply, admin) {
    const asked = askedIn(jsonIn(textIn(request.body)));
    if (asked === undefined)
      return sendProblem(
        reply,
        400,
        'expected {"gateway": "…", "route": "…", "target": "…", "tool": "…"}, and "claims" as a JSON object if there are any',
      );
    const answer = await toolCallers(admin.served().runtime, asked);
    return answer === undefined
      ? sendProblem(reply, 404, 'no such route has this target: the configuration may have changed')
      : sendJson(reply, admin.redactor().value(answer));
  },
});

function askedIn(body: unknown): AskedTool | undefined {
  const { gateway, route, target, tool, claims } = membersOf(body);
  if (
    typeof gateway !== 'string' ||
    typeof route !== 'string' ||
    typeof target !== 'string' ||
    typeof tool !== 'string'
  )
    return undefined;
  if (claims === undefined) return { gateway, route, target, tool };
  return isRecord(claims) ? { gateway, route, target, tool, claims } : undefined;
}
