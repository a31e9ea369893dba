import { isIP } from 'node:net';
import { z } from 'zod';
import { isLoopbackHost } from '../../core/dns-rebinding.ts';
import { AppError, messageOf } from '../../core/errors.ts';
import {
  isLoopback,
  LISTEN_ADDRESS_FORMS,
  type ListenAddress,
  parseListenAddress,
} from '../../core/listen.ts';
import { isForwardedFromTls, isOwnOrigin } from '../../core/own-origin.ts';
import { compileCaller } from '../admin-access/gateway-caller.ts';
import type { AdminRoles } from '../admin-access/settings.ts';
import { CALLER_HEADER, signCaller } from '../admin-access/signed-caller.ts';
import { auditOf } from '../audit/audit.ts';
import { defineBackend } from '../kernel/backend.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import { forwardedField } from '../kernel/request/forwarding.ts';
import { FieldNames, withoutFields } from '../kernel/request/header-list.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { principal, processSecret } from '../kernel/request/shared-slots.ts';
import { endEventsWithCredential } from './standing-stream.ts';
import { createUpstream, type UpstreamAddress } from './upstream/upstream.ts';

/** The admin pages, for the top-level section `ui`. Configurations cannot name this kind of backend. */
export const ui = defineBackend({
  key: 'ui',
  schema: z.strictObject({ adminAddr: z.string(), roles: z.custom<AdminRoles>().optional() }),
  api: 'http',
  countsTokens: false,
  isForOperators: true,
  connectsTo: () => ({ kind: 'admin' }),
  describe: () => 'admin pages',
  view: () => ({}),
  dump: () => [],
  probes: () => [],
  open({ adminAddr, roles }, context) {
    const address = addressOf(adminAddr, context);
    if (address === undefined)
      return { handle: () => Promise.reject(new AppError('no_backend')), close: () => Promise.resolve() };
    const callerOf = compileCaller(roles);
    const secret = processSecret.get(context.settings);
    const auditRefused = (ctx: RequestContext, why: string): void => {
      const { actor, from, role } = callerOf(ctx);
      void auditOf.get(context.settings)?.record({
        action: 'admin.request',
        outcome: 'refused',
        actor: { ...actor, ...(roles !== undefined && { role: role ?? 'none' }) },
        from,
        target: `${ctx.method} ${ctx.path}`,
        detail: `${why}; Host: ${ctx.host}, Origin: ${ctx.headers.get('origin') ?? 'none'}`,
      });
    };
    const upstream = createUpstream(address, { meter: context.settings.callMeter('Primary', 'Http') });
    return {
      async handle(ctx) {
        try {
          requireOwnPage(ctx);
        } catch (error) {
          auditRefused(ctx, messageOf(error));
          throw error;
        }
        requireAllowed(ctx);
        ctx.endpoint = upstream.address;
        const headers = withoutFields(ctx.headers.raw, NOT_FORWARDED);
        headers.push('host', upstream.authority);
        const target = ctx.path + ctx.query;
        if (secret !== undefined)
          headers.push(
            CALLER_HEADER,
            signCaller(secret.value(), { method: ctx.method, target }, callerOf(ctx), Date.now()),
          );
        const {
          status,
          headers: received,
          body,
        } = await upstream.relay({
          method: ctx.method,
          path: target,
          headers,
          body: ctx.body.forUpstream(),
          client: ctx,
        });
        ctx.reason = 'Upstream';
        body.watcher = ctx;
        endEventsWithCredential(ctx, received, body);
        return { status, headers: received, body };
      },
      close: () => upstream.close(),
    };
  },
});

/** The admin server gets no credentials, but who the caller is. It checks the origin of pages, which is done here for it. */
const NOT_FORWARDED = new FieldNames([
  ...['host', 'expect', 'origin', 'referer', 'authorization', 'cookie'],
  CALLER_HEADER,
  ...['sec-fetch-site', 'sec-fetch-mode', 'sec-fetch-dest', 'sec-fetch-user'],
]);

/**
 * Throws an `AppError` (403). Clients that a policy has authenticated may do everything. Without a policy, the pages show
 * what they do at the address of the admin server to programs and browsers of this machine, and change nothing.
 */
function requireAllowed(ctx: RequestContext): void {
  if (principal.get(ctx) !== undefined) return;
  const field = forwardedField(ctx.headers.raw.filter((_name, index) => index % 2 === 0));
  const isLocal = isLoopback(ctx.client.address) && isLoopbackHost(hostnameOf(ctx.host));
  if (isLocal && field !== undefined)
    throw new AppError('authorization_failed', {
      message: `programs of this machine do not send the header \`${field}\`, so something has forwarded the request, and the admin pages are for clients that sign in: set a policy such as \`oidc\`, \`basicAuth\` or \`apiKey\` under \`ui.policies\``,
    });
  if (!isLocal)
    throw new AppError('authorization_failed', {
      message:
        'the admin pages are for clients that sign in: set a policy such as `oidc`, `basicAuth` or `apiKey` under `ui.policies`',
    });
  if (ctx.method !== 'GET' && ctx.method !== 'HEAD')
    throw new AppError('authorization_failed', {
      message:
        'without a policy that authenticates clients, the admin pages change nothing here: use the address of the admin server, or set a policy under `ui.policies`',
    });
}

/** Cross-site request forgery: cookies and passwords of browsers are sent with requests of other sites' pages too. */
function requireOwnPage(ctx: RequestContext): void {
  const origin = ctx.headers.get('origin');
  const site = ctx.headers.get('sec-fetch-site');
  const isTls = ctx.client.scheme === 'https' || isForwardedFromTls(ctx.headers.get('x-forwarded-proto'));
  const isOwn = isOwnOrigin(origin, ctx.host, isTls);
  const isForeign = site === 'cross-site' || site === 'same-site';
  const isNavigation = ctx.method === 'GET' && ctx.headers.get('sec-fetch-mode') === 'navigate';
  if (isOwn && (!isForeign || isNavigation)) return;
  throw new AppError('authorization_failed', {
    message: 'the admin pages answer only pages of their own origin',
  });
}

const hostnameOf = (authority: string): string => authority.replace(/:\d+$/, '').toLowerCase();

/** Where this process reaches its admin server. Reports one that it cannot reach. */
function addressOf(configured: string, context: CompileContext): UpstreamAddress | undefined {
  const fromEnv = context.env['ADMIN_ADDR'] || undefined;
  const address = parseListenAddress(fromEnv ?? configured);
  const problem = problemOf(address, fromEnv);
  if (problem !== undefined) context.report({ code: 'AGW0105', ...problem, atKey: true });
  if (address === undefined || address.kind === 'off') return undefined;
  if (address.kind === 'unix') return { origin: 'http://localhost', socketPath: address.path };
  const [host = ''] = address.hosts;
  const own = host === '::' ? '::1' : host === '0.0.0.0' ? '127.0.0.1' : host;
  return { origin: `http://${isIP(own) === 6 ? `[${own}]` : own}:${address.port}` };
}

/** Why the gateway cannot pass requests on to that address, and what to do; `fromEnv` is the value of ADMIN_ADDR. */
function problemOf(
  address: ListenAddress | undefined,
  fromEnv: string | undefined,
): { message: string; help: string } | undefined {
  const setting = fromEnv === undefined ? '`config.adminAddr`' : 'the environment variable ADMIN_ADDR';
  const help = `remove \`ui\`, or set ${setting} to an address such as \`localhost:15000\``;
  if (address === undefined)
    return {
      message: `\`ui\` needs the admin server, and ADMIN_ADDR is not an address: ${LISTEN_ADDRESS_FORMS}`,
      help: 'correct the environment variable ADMIN_ADDR, or unset it: `config.adminAddr` applies then',
    };
  if (address.kind === 'off')
    return {
      message: `\`ui\` needs the admin server, which is off${fromEnv === undefined ? '' : ' (ADMIN_ADDR)'}`,
      help,
    };
  if (address.kind === 'tcp' && address.port === 0)
    return { message: '`ui` needs an admin server with a port that is known: it is 0', help };
  return undefined;
}
