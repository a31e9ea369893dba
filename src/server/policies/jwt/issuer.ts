import { isLoopbackHost } from '../../../core/dns-rebinding.ts';
import { messageOf } from '../../../core/errors.ts';
import { isRecord } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import { type DocumentClient, UnreachableError } from '../../transport/upstream/document-client.ts';
import type { KeySource } from './key-set.ts';

// Metadata of issuers, and checks of it that several policies make (RFC 8414, OpenID Connect Discovery).

/** Throws for metadata of another issuer than the configured one (RFC 8414 §3.3, OpenID Connect Discovery §4.3). */
export function checkIssuer(found: unknown, expected: string): void {
  if (found === expected) return;
  const shown = typeof found === 'object' && found !== null ? 'as an object' : String(found).slice(0, 200);
  throw new Error(`its metadata names the issuer ${shown}, expected ${expected}`);
}

/** Whether a member is a URL that may be opened: others, such as `javascript:`, must not reach clients. */
export function isHttpUrl(value: unknown): value is string {
  return typeof value === 'string' && /^https?:\/\//.test(value) && URL.canParse(value);
}

export const withoutSlash = (issuer: string): string => issuer.replace(/\/+$/, '');

/** OpenID Connect Discovery §4.1: the well-known segment goes behind the path. */
export const openIdConfiguration = (issuer: string): string =>
  `${withoutSlash(issuer)}/.well-known/openid-configuration`;

/**
 * Where an issuer may publish its metadata, in the order of MCP clients (MCP "Authorization Server Metadata Discovery"): with the
 * well-known segment between host and path (RFC 8414 §3.1 and §5), and behind the path.
 */
export function metadataUrls(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer);
  const inserted = (name: string): string => `${origin}/.well-known/${name}${withoutSlash(pathname)}`;
  return [
    ...new Set([
      inserted('oauth-authorization-server'),
      inserted('openid-configuration'),
      openIdConfiguration(issuer),
    ]),
  ];
}

/** An issuer answers, but publishes no metadata. */
class NoMetadataError extends Error {}

/**
 * What `read` makes of the first metadata that it accepts. It throws for metadata that cannot be used. Rejects with the reason for
 * each address.
 */
export async function firstMetadata<T>(
  urls: readonly string[],
  client: DocumentClient,
  read: (metadata: Readonly<Record<string, unknown>>) => T,
): Promise<{ value: T; lifetime: number }> {
  const problems: string[] = [];
  let isPublished = false;
  for (const url of urls)
    try {
      const { value, lifetime } = await client.fetch(url, LIMITS.metadataBytes);
      isPublished = true;
      if (!isRecord(value)) throw new Error('its metadata is not a JSON object');
      return { value: read(value), lifetime };
    } catch (error) {
      // The other addresses are on the same host.
      if (error instanceof UnreachableError) throw error;
      problems.push(messageOf(error));
    }
  const problem = problems.join('; ');
  throw isPublished ? new Error(problem) : new NoMetadataError(problem);
}

/**
 * The keys of an issuer, which its metadata locates (`jwks_uri`). The address is read again when the metadata expires, and when
 * there are no keys at it any more. An issuer without any metadata may have its keys at `/.well-known/jwks.json`.
 */
export function issuerKeys(issuer: string, client: DocumentClient): KeySource {
  let located: { url: string; until: number } | undefined;
  return async () => {
    const { url, until } = located ?? { until: Number.NEGATIVE_INFINITY };
    if (url !== undefined && performance.now() < until)
      try {
        return await client.fetch(url, LIMITS.keySetBytes);
      } catch {
        // It may have moved.
      }
    try {
      const { value, lifetime } = await firstMetadata(metadataUrls(issuer), client, (metadata) =>
        keySetUrlIn(metadata, issuer),
      );
      located = { url: value, until: performance.now() + lifetime };
    } catch (error) {
      if (url === undefined && error instanceof NoMetadataError)
        return keysWithoutMetadata(issuer, client, error);
      if (url === undefined) throw error;
    }
    return client.fetch(located?.url ?? '', LIMITS.keySetBytes);
  };
}

/** Where an issuer has its keys that follows no standard in this. */
export const wellKnownKeys = (issuer: string): string => `${withoutSlash(issuer)}/.well-known/jwks.json`;

async function keysWithoutMetadata(
  issuer: string,
  client: DocumentClient,
  reason: Error,
): ReturnType<KeySource> {
  try {
    return await client.fetch(wellKnownKeys(issuer), LIMITS.keySetBytes);
  } catch (error) {
    throw new Error(`the issuer publishes no metadata (${reason.message}), and ${messageOf(error)}`);
  }
}

/** `jwks_uri` of the metadata of an issuer. Throws if it must not be used. */
export function keySetUrlIn(metadata: Readonly<Record<string, unknown>>, issuer: string): string {
  checkIssuer(metadata['issuer'], issuer);
  const url = metadata['jwks_uri'];
  if (!isHttpUrl(url)) throw new Error('its metadata has no `jwks_uri` that is an http or https URL');
  // Often on another host, such as that of Google. Without TLS, anybody on the way could put in keys.
  const { protocol, origin, hostname } = new URL(url);
  const own = new URL(issuer);
  const isLocal = isLoopbackHost(hostname) && isLoopbackHost(own.hostname);
  if (protocol === 'https:' || origin === own.origin || (own.protocol === 'http:' && isLocal)) return url;
  throw new Error(`its metadata has the \`jwks_uri\` ${url.slice(0, 200)}, expected an https URL`);
}
