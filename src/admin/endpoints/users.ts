import type { FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../../core/errors.ts';
import { jsonIn, membersOf, textIn } from '../../core/foreign.ts';
import { type SignInService, signInService } from '../../server/user-tokens/service.ts';
import type { TokenRow } from '../../server/user-tokens/token-table.ts';
import type { EndpointCall } from '../call.ts';
import { defineEndpoint, sendJson, sendProblem, shows } from '../endpoint.ts';
import { readOnlyRefusal } from '../read-only.ts';
import type { Admin } from '../sources.ts';

/**
 * Who has signed in at which MCP server (`backendAuth.oauth`): `{signIns: [{user, id, server, scopes, signedInAt, expiresAt}]}`. `id` is
 * that of the user; `expiresAt`, of the current token, may be null. Never a token.
 */
export const users = defineEndpoint({
  path: '/api/users',
  methods: { GET: shows('viewer') },
  handle: (request, reply, admin, call) =>
    withService(admin, request, reply, call, async ({ tokens }) =>
      sendJson(reply, { signIns: (await tokens.table.list()).map(shown) }),
    ),
});

/**
 * Signs a user out: `{user}` is a name or an id of `/api/users`; `{server}` only that one. Returns `{signIns: […]}`, each with `revoked`:
 * whether its authorization server has revoked the token.
 */
export const revokeUser = defineEndpoint({
  path: '/api/users/revoke',
  methods: { POST: { role: 'editor', audit: 'user.revoke' } },
  handle: (request, reply, admin, call) =>
    withService(admin, request, reply, call, async ({ tokens, signIns }) => {
      const { user, server } = membersOf(jsonIn(textIn(request.body)));
      if (typeof user !== 'string' || (server !== undefined && typeof server !== 'string'))
        return sendProblem(reply, 400, 'expected {"user": "<name or id>"}, and optionally "server"');
      const all = (await tokens.table.list()).filter(
        (row) => (row.owner === user || row.who === user) && (server === undefined || row.server === server),
      );
      const [first] = all;
      if (first === undefined)
        return sendProblem(reply, 400, 'no such user has signed in: `agctl users list` lists all who have');
      if (all.some(({ owner }) => owner !== first.owner))
        return sendProblem(
          reply,
          400,
          'several users have this name: give the id of one (`agctl users list`)',
        );
      call.changed({ target: `${first.owner} (${first.who})` });
      if (server === undefined) await signIns.removeOf(first.owner);
      const revoked = [];
      for (const row of all) revoked.push({ ...shown(row), revoked: await tokens.remove(row) });
      call.changed({ detail: `signed out at ${all.map((row) => row.server).join(', ')}` });
      return sendJson(reply, { signIns: revoked });
    }),
});

const shown = ({ owner, who, server, scope, createdAt, expiresAt }: TokenRow): object => ({
  user: who,
  id: owner,
  server,
  scopes: scope.split(/[\s,]+/).filter((each) => each !== ''),
  signedInAt: new Date(createdAt).toISOString(),
  expiresAt: expiresAt === null ? null : new Date(expiresAt).toISOString(),
});

/** Status 403 for a change if the gateway is read-only, 409 without sign-ins, 503 if the database fails. */
async function withService(
  admin: Admin,
  { method }: FastifyRequest,
  reply: FastifyReply,
  call: EndpointCall,
  work: (service: SignInService) => Promise<FastifyReply>,
): Promise<FastifyReply> {
  const refusal = method === 'GET' ? undefined : readOnlyRefusal(admin);
  if (refusal !== undefined) return sendProblem(reply, 403, refusal);
  const service = signInService.get(admin.served().runtime.settings);
  if (service === undefined)
    return sendProblem(
      reply,
      409,
      'users do not sign in at MCP servers here: set config.mcp.signIn, config.database and config.session.key, and restart the gateway',
    );
  try {
    return await work(service);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    call.failed(error);
    return sendProblem(
      reply,
      503,
      `${error.message}${error.detail === undefined ? '' : `: ${error.detail}`}`,
    );
  }
}
