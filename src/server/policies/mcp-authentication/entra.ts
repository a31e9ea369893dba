import { AppError, messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import { emptyReply } from '../../kernel/request/error-response.ts';
import { HeaderList } from '../../kernel/request/header-list.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import type { DocumentClient } from '../../transport/upstream/document-client.ts';

// Microsoft Entra ID rejects `resource` (RFC 8707; AADSTS9010010), which MCP clients must send. Clients therefore get
// endpoints of the gateway that remove it.

export interface EntraEndpoints {
  /** Issuer of version 2.0, which the metadata has. */
  readonly issuer: string;
  readonly authorization: string;
  readonly token: string;
  readonly keys: string;
}

/**
 * Endpoints of version 2.0 for a tenant (Microsoft identity platform, "OpenID Connect"). The issuer of tokens of version 1.0 is
 * another host.
 */
export function entraEndpoints(issuer: string): EntraEndpoints {
  const { origin, pathname } = new URL(
    issuer.replace('://sts.windows.net/', '://login.microsoftonline.com/'),
  );
  const authority = `${origin}/${pathname.split('/').find((part) => part !== '') ?? 'common'}`;
  return {
    issuer: `${authority}/v2.0`,
    authorization: `${authority}/oauth2/v2.0/authorize`,
    token: `${authority}/oauth2/v2.0/token`,
    keys: `${authority}/discovery/v2.0/keys`,
  };
}

/** Sends a browser on to the authorization endpoint, without `resource`. */
export function redirectToEntra({ query }: RequestContext, issuer: string): Reply {
  const parameters = new URLSearchParams(query);
  parameters.delete('resource');
  const reply = emptyReply(302);
  reply.headers.append('location', `${entraEndpoints(issuer).authorization}?${parameters.toString()}`);
  return reply;
}

export interface EntraClient {
  readonly issuer: string;
  readonly clientId: string | undefined;
  readonly clientSecret: string | undefined;
}

/** Grants of users. With the secret, any other would give every caller tokens of the application itself. */
const GRANTS_OF_USERS: ReadonlySet<string | null> = new Set(['authorization_code', 'refresh_token']);

/**
 * Forwards a token request without `resource`. The configured secret is added for the configured client only, if the request
 * has no secret of its own. Rejects with `provider_failed`.
 */
export async function relayTokenRequest(
  ctx: RequestContext,
  client: DocumentClient,
  { issuer, clientId, clientSecret }: EntraClient,
): Promise<Reply> {
  const body = await ctx.body.read(LIMITS.registrationBytes);
  const parameters = new URLSearchParams(body.toString());
  parameters.delete('resource');
  const authorization = ctx.headers.get('authorization');
  const isOwn = clientId !== undefined && parameters.getAll('client_id').join() === clientId;
  const grants = parameters.getAll('grant_type');
  if (
    clientSecret !== undefined &&
    authorization === undefined &&
    isOwn &&
    !parameters.has('client_secret') &&
    !parameters.has('client_assertion') &&
    grants.length === 1 &&
    GRANTS_OF_USERS.has(grants[0] ?? null)
  )
    parameters.set('client_secret', clientSecret);
  const url = entraEndpoints(issuer).token;
  const { pathname } = new URL(url);
  const headers = ['content-type', 'application/x-www-form-urlencoded', 'accept', 'application/json'];
  if (authorization !== undefined) headers.push('authorization', authorization);
  const request = { method: 'POST', path: pathname, headers, body: Buffer.from(parameters.toString()) };
  const answer = await client.send(url, request, LIMITS.metadataBytes).catch((error: unknown) => {
    throw new AppError('provider_failed', { detail: messageOf(error) });
  });
  const type = answer.headers['content-type'];
  return {
    status: answer.status,
    // RFC 6749 §5.1.
    headers: new HeaderList([
      ...(typeof type === 'string' ? ['content-type', type] : []),
      ...['cache-control', 'no-store'],
    ]),
    body: answer.body,
  };
}
