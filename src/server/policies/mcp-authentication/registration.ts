import { AppError, messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import { textReply } from '../../kernel/error-response.ts';
import { HeaderList } from '../../kernel/header-list.ts';
import type { Reply, RequestContext } from '../../kernel/request-context.ts';
import type { DocumentClient } from './document.ts';
import type { ServerMetadata } from './server-metadata.ts';

/**
 * Dynamic client registration (RFC 7591): handed to the provider as it is, and its answer handed back with status
 * and body. Nothing else travels: no header of the client's, and none of the provider's but the content type.
 */
export async function relayRegistration(
  ctx: RequestContext,
  client: DocumentClient,
  server: ServerMetadata,
): Promise<Reply> {
  const body = await ctx.body.read(LIMITS.registrationBytes);
  const url = await server.registrationUrl();
  if (url === undefined)
    throw new AppError('provider_failed', { detail: 'the identity provider has no registration endpoint' });
  const { pathname, search } = new URL(url);
  const request = {
    method: 'POST',
    path: pathname + search,
    headers: ['content-type', 'application/json', 'accept', 'application/json'],
    body,
  };
  const answer = await client.send(url, request, LIMITS.registrationBytes).catch((error: unknown) => {
    throw new AppError('provider_failed', { detail: messageOf(error) });
  });
  const type = answer.headers['content-type'];
  return {
    status: answer.status,
    headers: new HeaderList(typeof type === 'string' ? ['content-type', type] : []),
    body: answer.body,
  };
}

/**
 * One client for everybody: what it may do must not depend on who asks, so redirects go to the asker's own machine
 * only. Otherwise a stranger could have codes of users, who trust this client, sent to himself.
 */
export async function answerRegistration(ctx: RequestContext, clientId: string): Promise<Reply> {
  const requested = parseRegistration(await ctx.body.read(LIMITS.registrationBytes));
  const uris = Array.isArray(requested['redirect_uris']) ? (requested['redirect_uris'] as unknown[]) : [];
  if (!uris.every(isLoopbackUrl))
    return jsonReply(400, {
      error: 'invalid_redirect_uri',
      error_description: 'redirect URIs must be on localhost, 127.0.0.1 or [::1]',
    });
  return jsonReply(201, {
    client_id: clientId,
    client_id_issued_at: 0,
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    redirect_uris: uris,
  });
}

export function jsonReply(status: number, value: unknown): Reply {
  return textReply(status, JSON.stringify(value), 'application/json');
}

function parseRegistration(body: Buffer): Record<string, unknown> {
  try {
    const value = JSON.parse(body.toString('utf8')) as unknown;
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch {
    // Answered below.
  }
  throw new AppError('bad_request', { message: 'the registration is not a JSON object' });
}

function isLoopbackUrl(value: unknown): boolean {
  if (typeof value !== 'string' || !URL.canParse(value)) return false;
  const { protocol, hostname } = new URL(value);
  return (
    (protocol === 'http:' || protocol === 'https:') &&
    /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)
  );
}
