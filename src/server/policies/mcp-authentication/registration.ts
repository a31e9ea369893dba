import { AppError, ERRORS, messageOf } from '../../../core/errors.ts';
import { isRecord, jsonIn } from '../../../core/foreign.ts';
import { LIMITS, type Limits } from '../../../core/limits.ts';
import { LruMap } from '../../../core/lru-map.ts';
import { textReply } from '../../kernel/request/error-response.ts';
import { HeaderList } from '../../kernel/request/header-list.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import type { DocumentClient } from '../../transport/upstream/document-client.ts';
import { TokenBucket } from '../limits/token-bucket.ts';
import type { ServerMetadata } from './provider.ts';
import { isLoopbackUri, isRedirectUri } from './redirect-uris.ts';

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
  if (answer.status < 300 && !isRegistered(answer.body))
    throw new AppError('provider_failed', {
      detail: 'the answer to the registration is not a JSON object with `client_id`',
    });
  const type = answer.headers['content-type'];
  return {
    status: answer.status,
    headers: new HeaderList(typeof type === 'string' ? ['content-type', type] : []),
    body: answer.body,
  };
}

/** RFC 7591 §3.2.1. Clients store the answer, and fail with it at each later start. */
function isRegistered(body: Buffer): boolean {
  const id = registrationIn(body)?.['client_id'];
  return typeof id === 'string' && id !== '';
}

/**
 * Answers a registration with the configured client. All users share and trust this client, so redirect URIs are limited to
 * loopback hosts and those in `allowed`: otherwise an attacker could register a URI to which authorization codes of users are
 * sent. Others are left out if one remains (RFC 7591 §2 allows that): clients register all callbacks that they may use,
 * such as VS Code `http://127.0.0.1:33418/` and `https://vscode.dev/redirect`.
 */
export async function answerRegistration(
  ctx: RequestContext,
  clientId: string,
  allowed: readonly string[],
): Promise<Reply> {
  const requested = registrationIn(await ctx.body.read(LIMITS.registrationBytes));
  if (requested === undefined)
    return refusal('invalid_client_metadata', 'the registration is not a JSON object');
  const uris = requested['redirect_uris'];
  if (!Array.isArray(uris) || uris.length === 0 || uris.length > LIMITS.redirectUris)
    return refusal(
      'invalid_redirect_uri',
      `redirect_uris must be a list of 1 to ${LIMITS.redirectUris} redirect URIs`,
    );
  if (!uris.every(isRedirectUri))
    return refusal(
      'invalid_redirect_uri',
      'each of redirect_uris must be an absolute URI (RFC 3986) without user information and fragment',
    );
  // Compared as text (RFC 9700 §2.1): two URIs that only mean the same are two to the provider.
  const accepted = uris.filter((uri) => isLoopbackUri(uri) || allowed.includes(uri));
  if (accepted.length === 0)
    return refusal(
      'invalid_redirect_uri',
      'one of redirect_uris must be on localhost, 127.0.0.1 or [::1], or in allowedRedirectURIs of the gateway',
    );
  return jsonReply(201, {
    client_id: clientId,
    client_id_issued_at: 0,
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    redirect_uris: accepted,
  });
}

/** RFC 7591 §3.2.2. */
function refusal(error: 'invalid_redirect_uri' | 'invalid_client_metadata', description: string): Reply {
  return jsonReply(400, { error, error_description: description });
}

export function jsonReply(status: number, value: unknown): Reply {
  return textReply(status, JSON.stringify(value), 'application/json');
}

/** A registration, or the answer to one; undefined if it is not a JSON object. */
function registrationIn(body: Buffer): Readonly<Record<string, unknown>> | undefined {
  const value = jsonIn(body.toString('utf8'));
  return isRecord(value) ? value : undefined;
}

/**
 * Rate limit of client registrations, which need no authentication: a loop could fill the provider with clients, while a
 * client registers only once. Limited per address (`LIMITS.registrationsPerAddress` in `LIMITS.registrationsInterval`), and in
 * total (`LIMITS.registrations`), because IPv6 addresses are plentiful.
 */
export class RegistrationLimit {
  readonly #limits: Limits;
  readonly #all: TokenBucket;
  readonly #byAddress: LruMap<string, TokenBucket>;

  constructor(limits: Limits) {
    this.#limits = limits;
    this.#byAddress = new LruMap(limits.registrationAddresses);
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
    if (empty !== undefined) {
      const wait = Math.max(1, empty.secondsUntil(1, now));
      const whose = empty === this.#all ? 'of all addresses together' : 'of your address';
      const what = `${empty.size} client registrations ${whose}`;
      const { text } = ERRORS.rate_limited;
      throw new AppError('rate_limited', {
        message: `${text}: at most ${what}; try again in ${wait} s, or use the client that is registered`,
        logged: text,
        detail: what,
        headers: ['retry-after', String(wait)],
      });
    }
    for (const bucket of buckets) bucket.take(1);
  }

  /** Over `LIMITS.registrationAddresses`, the least recently used address is removed; the total limit still applies to it. */
  #bucketOf(address: string, now: number): TokenBucket {
    const known = this.#byAddress.get(address);
    if (known !== undefined) return known;
    const most = this.#limits.registrationsPerAddress;
    const bucket = new TokenBucket(most, 1, this.#limits.registrationsInterval / most, now);
    this.#byAddress.set(address, bucket);
    return bucket;
  }
}
