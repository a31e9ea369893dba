import type { IncomingMessage } from 'node:http';
import { isCredentialName } from '../../core/credentials.ts';
import type { HeaderList } from '../kernel/header-list.ts';
import { withoutParameters } from '../kernel/path.ts';

/**
 * Headers that say who pays or may, besides those that `isCredentialName` matches (`x-api-key`, `x-goog-api-key`, …). With the
 * gateway's key they would choose another account of it, or show the provider a key that is not meant for it.
 */
const CREDENTIALS = new Set([
  'openai-organization',
  'openai-project',
  'x-goog-user-project',
  'ocp-apim-subscription-key',
]);

/** `cf-aig-authorization`, `helicone-auth`. */
const CREDENTIAL = /(?:^|-)auth(?:orization)?$/;

/** Query parameters that APIs of models take for keys: `?key=` of Google, `?api-key=` and others. */
const PARAMETERS: ReadonlySet<string> = new Set(['key', 'api_key', 'api-key', 'apikey', 'access_token']);

/**
 * Takes credentials of the client out of what goes to a provider that gets a key of ours. What a policy of the
 * configuration has set stays, such as the `openai-organization` that the key belongs to.
 */
export function dropCredentials({ raw }: HeaderList, request: IncomingMessage): void {
  for (let at = raw.length - 2; at >= 0; at -= 2) {
    const name = (raw[at] as string).toLowerCase();
    if (!CREDENTIALS.has(name) && !CREDENTIAL.test(name) && !isCredentialName(name)) continue;
    // The provider takes one `authorization`, and that is the key. `headersDistinct` is built when it is first read.
    if (name === 'authorization' || request.headersDistinct[name]?.includes(raw[at + 1] as string))
      raw.splice(at, 2);
  }
}

/** The same for a query (`?…` or empty). */
export function withoutCredentials(query: string): string {
  return query === '' ? query : withoutParameters(query, PARAMETERS);
}
