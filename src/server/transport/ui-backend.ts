import { isIP } from 'node:net';
import { z } from 'zod';
import { isLoopbackHost } from '../../core/dns-rebinding.ts';
import { AppError } from '../../core/errors.ts';
import { isLoopback, parseListenAddress } from '../../core/listen.ts';
import { compileCaller } from '../admin-access/gateway-caller.ts';
import type { AdminRoles } from '../admin-access/settings.ts';
import { CALLER_HEADER, signCaller } from '../admin-access/signed-caller.ts';
import { defineBackend } from '../kernel/backend.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import { isOfProxy } from '../kernel/request/forwarding.ts';
import { FieldNames, withoutFields } from '../kernel/request/header-list.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { principal, processSecret } from '../kernel/request/shared-slots.ts';
import { createUpstream, type UpstreamAddress } from './upstream/upstream.ts';

/** The admin pages, for the top-level section `ui`. Configurations cannot name this kind of backend. */
export const ui = defineBackend({
  key: 'ui',
  schema: z.strictObject({ adminAddr: z.string(), roles: z.custom<AdminRoles>().optional() }),
  api: 'http',
  countsTokens: false,
  connectsTo: () => ({ kind: 'admin' }),
  describe: () => 'admin pages',
  view: () => ({}),
  dump: () => [],
  probes: () => [],
  open({ adminAddr, roles }, context) {
    const address = addressOf(context.env['ADMIN_ADDR'] || adminAddr, context);
    if (address === undefined)
      return { handle: () => Promise.reject(new AppError('no_backend')), close: () => Promise.resolve() };
    const callerOf = compileCaller(roles);
    const secret = processSecret.get(context.settings);
    const upstream = createUpstream(address, { meter: context.settings.callMeter('Primary', 'Http') });
    return {
      async handle(ctx) {
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
  requireOwnPage(ctx);
  if (principal.get(ctx) !== undefined) return;
  const isLocal =
    isLoopback(ctx.client.address) &&
    isLoopbackHost(hostnameOf(ctx.host)) &&
    !ctx.headers.raw.some((name, index) => index % 2 === 0 && isOfProxy(name));
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
  const isOwn = origin === undefined || origin === `http://${ctx.host}` || origin === `https://${ctx.host}`;
  const isForeign = site === 'cross-site' || site === 'same-site';
  const isNavigation = ctx.method === 'GET' && ctx.headers.get('sec-fetch-mode') === 'navigate';
  if (isOwn && (!isForeign || isNavigation)) return;
  throw new AppError('authorization_failed', {
    message: 'the admin pages answer only pages of their own origin',
  });
}

const hostnameOf = (authority: string): string => authority.replace(/:\d+$/, '').toLowerCase();

/** Where this process reaches its admin server. Reports one that is off. */
function addressOf(text: string, context: CompileContext): UpstreamAddress | undefined {
  const address = parseListenAddress(text);
  if (address === undefined || address.kind === 'off') {
    context.report({
      code: 'AGW0105',
      message: '`ui` needs the admin server, which is off',
      help: 'remove `ui`, or set `config.adminAddr` to an address such as `localhost:15000`',
      atKey: true,
    });
    return undefined;
  }
  if (address.kind === 'unix') return { origin: 'http://localhost', socketPath: address.path };
  const [host = ''] = address.hosts;
  const own = host === '::' ? '::1' : host === '0.0.0.0' ? '127.0.0.1' : host;
  return { origin: `http://${isIP(own) === 6 ? `[${own}]` : own}:${address.port}` };
}
