import { messageOf } from '../../core/errors.ts';
import { isRecord } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { type DocumentClient, UnreachableError } from '../transport/upstream/document-client.ts';

// Metadata of issuers, and checks of it that several features make (RFC 8414, OpenID Connect Discovery).

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

export const withoutSlash = (issuer: string): string => issuer.replace(/(?<!\/)\/+$/, '');

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
export class NoMetadataError extends Error {}

/**
 * What `read` makes of the first metadata that it accepts. It throws for metadata that cannot be used. Rejects with the addresses
 * that were asked, and what was wrong there, which is said once.
 */
export async function firstMetadata<T>(
  urls: readonly string[],
  client: DocumentClient,
  read: (metadata: Readonly<Record<string, unknown>>) => T,
): Promise<{ value: T; lifetime: number }> {
  const problems: { readonly at: string; readonly what: string }[] = [];
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
      const { origin, pathname } = new URL(url);
      const at = origin + pathname;
      const message = messageOf(error);
      problems.push({ at, what: message.startsWith(at) ? message.slice(at.length) : `: ${message}` });
    }
  const problem = [...Map.groupBy(problems, ({ what }) => what)]
    .map(([what, all]) => all.map(({ at }) => at).join(' and ') + what)
    .join('; ');
  throw isPublished ? new Error(problem) : new NoMetadataError(problem);
}
