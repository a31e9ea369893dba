import type { IncomingMessage } from 'node:http';
import { isCredentialName } from '../../core/credentials.ts';
import type { HeaderList } from '../kernel/header-list.ts';
import { withoutParameters } from '../kernel/request-target.ts';

/**
 * Headers that select an account or carry a credential, in addition to those of `isCredentialName` (`x-api-key`,
 * `x-goog-api-key`, …). Next to the gateway's key they could bill another account or disclose a key to the provider.
 */
const CREDENTIALS = new Set([
  'openai-organization',
  'openai-project',
  'x-goog-user-project',
  'ocp-apim-subscription-key',
]);

/** `cf-aig-authorization`, `helicone-auth`. */
const CREDENTIAL = /(?:^|-)auth(?:orization)?$/;

/** Query parameters that LLM APIs accept as keys, such as Google's `?key=`. */
const PARAMETERS: ReadonlySet<string> = new Set(['key', 'api_key', 'api-key', 'apikey', 'access_token']);

/**
 * Removes the client's credentials from a request that carries the gateway's key. Headers set by a policy are kept,
 * such as the `openai-organization` of the key.
 */
export function dropCredentials({ raw }: HeaderList, request: IncomingMessage): void {
  for (let at = raw.length - 2; at >= 0; at -= 2) {
    const name = (raw[at] as string).toLowerCase();
    if (!CREDENTIALS.has(name) && !CREDENTIAL.test(name) && !isCredentialName(name)) continue;
    // `authorization` is always removed, because it will hold the key. `headersDistinct` is built lazily by Node.js.
    if (name === 'authorization' || request.headersDistinct[name]?.includes(raw[at + 1] as string))
      raw.splice(at, 2);
  }
}

/** Removes credentials from a query (`?…` or empty). */
export function withoutCredentials(query: string): string {
  return query === '' ? query : withoutParameters(query, PARAMETERS);
}
