import { messageOf } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { counted } from '../../core/render/counted.ts';
import type { DocumentClient } from '../../server/policies/mcp-authentication/document.ts';
import type { McpAuthenticationConfig } from '../../server/policies/mcp-authentication/index.ts';
import { providerOf } from '../../server/policies/mcp-authentication/provider.ts';
import { type CheckResult, fail, ok, skip } from './check.ts';
import { explain } from './provider-refusals.ts';

export type Metadata = Readonly<Record<string, unknown>> | undefined;

/**
 * Checks whether the provider has signing keys at the expected URL. `answered`: it returned its metadata; if it did
 * not, the common cause is reported only once. Keys in the configuration or in a file are not checked here.
 */
export async function checkKeys(
  { answered, document }: { readonly answered: boolean; readonly document: Metadata },
  policy: McpAuthenticationConfig,
  client: DocumentClient,
): Promise<CheckResult[]> {
  const { issuer, provider, jwks } = policy;
  const configured = typeof jwks === 'object' && 'url' in jwks ? jwks.url : undefined;
  if (jwks !== undefined && configured === undefined) return [];
  const url = configured ?? providerOf(provider).keySetUrl(issuer);
  try {
    const { value } = await client.fetch(url, LIMITS.keySetBytes);
    const count = ((value as { keys?: { use?: string }[] }).keys ?? []).filter(
      ({ use }) => use === undefined || use === 'sig',
    ).length;
    return [
      count > 0
        ? ok(`keys: ${counted(count, 'signing key')} at ${url}`)
        : fail(`keys: none for signatures at ${url}`, keysFix(policy, document)),
    ];
  } catch (error) {
    if (!answered && configured === undefined) return [skip(`keys not available from ${url} either`)];
    return [explain('keys', messageOf(error), keysFix(policy, document))];
  }
}

/** The fix if the keys are not available. The metadata, as far as it is known, contains their URL (RFC 8414 §2). */
export function keysFix({ issuer, provider, jwks }: McpAuthenticationConfig, document: Metadata): string {
  const published = document?.['jwks_uri'];
  const asked = typeof jwks === 'object' && 'url' in jwks ? jwks.url : providerOf(provider).keySetUrl(issuer);
  if (typeof published === 'string' && published !== asked && /^https?:\/\//.test(published))
    return `the provider publishes its keys elsewhere: set \`jwks: { url: ${published} }\``;
  return provider === undefined && jwks === undefined
    ? 'set `jwks`, or `provider.idpx` for a provider with realms'
    : 'set `jwks` to the URL where the provider publishes its keys';
}

/** The metadata of the provider, or undefined if it is not available. */
export async function readMetadata(
  { issuer, provider }: McpAuthenticationConfig,
  client: DocumentClient,
): Promise<Metadata> {
  try {
    const { value } = await client.fetch(providerOf(provider).metadataUrl(issuer), LIMITS.metadataBytes);
    return value as Metadata;
  } catch {
    return undefined;
  }
}
