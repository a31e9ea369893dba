import { isLoopbackHost } from '../../../core/dns-rebinding.ts';
import { messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import {
  checkIssuer,
  firstMetadata,
  isHttpUrl,
  metadataUrls,
  NoMetadataError,
  withoutSlash,
} from '../../credentials/issuer-metadata.ts';
import type { DocumentClient } from '../../transport/upstream/document-client.ts';
import type { KeySource } from './key-set.ts';

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
