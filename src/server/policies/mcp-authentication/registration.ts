import { isLoopbackHost } from '../../../core/dns-rebinding.ts';
import { AppError, messageOf } from '../../../core/errors.ts';
import { LIMITS, type Limits } from '../../../core/limits.ts';
import { textReply } from '../../kernel/error-response.ts';
import { HeaderList } from '../../kernel/header-list.ts';
import type { Reply, RequestContext } from '../../kernel/request-context.ts';
import type { DocumentClient } from '../../transport/document-client.ts';
import { TokenBucket } from '../token-bucket.ts';
import type { ServerMetadata } from './provider.ts';

/**
 * Forwards a dynamic client registration (RFC 7591) to the provider and returns status, content type and body of its
 * response. No other headers are forwarded. Rejects with `provider_failed`.
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
 * Answers a registration with the configured client. All users share and trust this client, so redirect URIs are limited to
 * loopback hosts: otherwise an attacker could register a URI to which authorization codes of users are sent.
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
    // Reported below.
  }
  throw new AppError('bad_request', { message: 'the registration is not a JSON object' });
}

function isLoopbackUrl(value: unknown): boolean {
  if (typeof value !== 'string' || !URL.canParse(value)) return false;
  const { protocol, hostname } = new URL(value);
  return (protocol === 'http:' || protocol === 'https:') && isLoopbackHost(hostname);
}

/**
 * Rate limit of client registrations, which need no authentication: a loop could fill the provider with clients, while a
 * client registers only once. Limited per address (`LIMITS.registrationsPerAddress` in `LIMITS.registrationsInterval`), and in
 * total (`LIMITS.registrations`), because IPv6 addresses are plentiful.
 */
export class RegistrationLimit {
  readonly #limits: Limits;
  readonly #all: TokenBucket;
  readonly #byAddress = new Map<string, TokenBucket>();

  constructor(limits: Limits) {
    this.#limits = limits;
    const { registrations, registrationsInterval } = limits;
    this.#all = new TokenBucket(registrations, 1, registrationsInterval / registrations, performance.now());
  }

  /** Number of addresses with a bucket. */
  get addresses(): number {
    return this.#byAddress.size;
  }

  /** Counts a registration. Throws `rate_limited` (429) over the limit of the address or the total limit. */
  take({ client }: RequestContext): void {
    const now = performance.now();
    const buckets = [this.#bucketOf(client.address, now), this.#all];
    const empty = buckets.find((bucket) => bucket.remaining(now) < 1);
    if (empty !== undefined)
      throw new AppError('rate_limited', {
        headers: ['retry-after', String(Math.max(1, empty.secondsUntil(1, now)))],
        detail:
          empty === this.#all
            ? 'total limit of client registrations'
            : 'client registrations of this address',
      });
    for (const bucket of buckets) bucket.take(1);
  }

  /** Over `LIMITS.registrationAddresses`, the oldest address is removed; the total limit still applies to it. */
  #bucketOf(address: string, now: number): TokenBucket {
    const known = this.#byAddress.get(address);
    if (known !== undefined) return known;
    if (this.#byAddress.size >= this.#limits.registrationAddresses)
      this.#byAddress.delete(this.#byAddress.keys().next().value as string);
    const most = this.#limits.registrationsPerAddress;
    const bucket = new TokenBucket(most, 1, this.#limits.registrationsInterval / most, now);
    this.#byAddress.set(address, bucket);
    return bucket;
  }
}
