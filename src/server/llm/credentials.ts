import { isCredentialName } from '../../core/credentials.ts';
import { encodingsOf } from '../../core/redact.ts';
import type { HeaderList } from '../kernel/request/header-list.ts';
import type { ClientRequest, RequestContext } from '../kernel/request/request-context.ts';
import { withoutParameters } from '../kernel/request/request-target.ts';
import { backendKey } from '../kernel/request/shared-slots.ts';
import { requestSigner, type SignRequest } from '../transport/host-backend.ts';
import type { ProviderFormatKey } from './formats/index.ts';
import { keyHeader, type ProviderKind } from './providers/provider.ts';

// Providers never get the client's credentials, clients never the gateway's key.

/**
 * Headers that select an account or carry a credential, in addition to those of `isCredentialName` (`x-api-key`,
 * `x-goog-api-key`, …). Next to the gateway's key they could bill another account or disclose a key to the provider.
 */
const CREDENTIALS = new Set([
  'openai-organization',
  'openai-project',
  'anthropic-organization-id',
  'anthropic-workspace-id',
  'anthropic-user-profile-id',
  'x-goog-user-project',
  'ocp-apim-subscription-key',
]);

/** Fields of nearly all requests that are not credentials: the other checks of them took 0.8 µs per call. */
const ORDINARY = new Set([
  'host',
  'accept',
  'accept-encoding',
  'accept-language',
  'content-type',
  'user-agent',
]);

/** `cf-aig-authorization`, `helicone-auth`. */
const CREDENTIAL = /(?:^|-)auth(?:orization)?$/;

/** Query parameters that LLM APIs accept as keys, such as Google's `?key=`. */
const PARAMETERS: ReadonlySet<string> = new Set(['key', 'api_key', 'api-key', 'apikey', 'access_token']);

/** What a provider gets instead of the client's credentials. */
export interface GatewayCredential {
  readonly apiKey: string | undefined;
  /** Whether the client's credentials are removed. */
  readonly isReplaced: boolean;
  /** Encodings of the key to redact in responses. */
  readonly encodings: readonly string[];
  /** Adds a signature or a token of `policies.backendAuth`, after all other changes to the request. */
  readonly sign?: SignRequest;
}

/** The credential of the model, else that of the policies (`backendAuth`). */
export function gatewayCredential(
  ctx: RequestContext,
  {
    apiKey,
    keyEncodings: encodings,
    replacesCredentials,
    hasOwnCredential,
  }: {
    apiKey: string | undefined;
    keyEncodings: readonly string[];
    replacesCredentials: boolean;
    hasOwnCredential: boolean;
  },
): GatewayCredential {
  // Those of the machine, which a provider may find, are not its own.
  const sign = hasOwnCredential ? undefined : requestSigner.get(ctx);
  if (sign !== undefined) return { apiKey, isReplaced: true, encodings, sign };
  const routeKey = replacesCredentials ? undefined : backendKey.get(ctx);
  if (routeKey === undefined) return { apiKey, isReplaced: replacesCredentials, encodings };
  return { apiKey: routeKey, isReplaced: true, encodings: keyEncodings(routeKey) };
}

/** Whether a header of a client, by its name in lower case, is a credential or selects an account. */
export const isCredential = (name: string): boolean =>
  !ORDINARY.has(name) && (CREDENTIALS.has(name) || CREDENTIAL.test(name) || isCredentialName(name));

/**
 * Removes the client's credentials from a request that carries the gateway's key. Headers set by a policy are kept,
 * such as the `openai-organization` of the key.
 */
export function dropCredentials({ raw }: HeaderList, request: ClientRequest): void {
  for (let at = raw.length - 2; at >= 0; at -= 2) {
    const name = (raw[at] ?? '').toLowerCase();
    if (!isCredential(name)) continue;
    // `authorization` is always removed, because it will hold the key. `headersDistinct` is built lazily by Node.js.
    if (name === 'authorization' || request.headersDistinct[name]?.includes(raw[at + 1] ?? ''))
      raw.splice(at, 2);
  }
}

/** Headers that only the API of the client knows, such as `anthropic-beta` and `openai-organization`. */
const OF_ONE_API = /^(?:anthropic|openai)-/;

/** Removes the client's headers for another API than the provider's. Headers set by a policy are kept. */
export function dropForeignHeaders({ raw }: HeaderList, request: ClientRequest): void {
  for (let at = raw.length - 2; at >= 0; at -= 2) {
    const name = (raw[at] ?? '').toLowerCase();
    if (OF_ONE_API.test(name) && request.headersDistinct[name]?.includes(raw[at + 1] ?? ''))
      raw.splice(at, 2);
  }
}

/** Sends the client's own key as the provider expects it: clients of other APIs have it in headers of their own. */
export function sendClientKey(
  headers: HeaderList,
  provider: ProviderKind,
  format: ProviderFormatKey | undefined,
): void {
  const bearer = /^Bearer +(\S+)$/i.exec(headers.get('authorization') ?? '')?.[1];
  const key = headers.get('x-api-key') ?? headers.get('x-goog-api-key') ?? bearer;
  if (key === undefined) return;
  for (const name of ['x-api-key', 'x-goog-api-key', 'authorization']) headers.delete(name);
  headers.append(...keyHeader(provider, key, format));
}

/** Removes credentials from a query (`?…` or empty). */
export function withoutCredentials(query: string): string {
  return query === '' ? query : withoutParameters(query, PARAMETERS);
}

/** Shorter values are not real keys and would occur in responses by chance. */
const SHORTEST = 6;

/** The encodings in which a provider may echo a key. Empty for keys under 6 characters. */
export const keyEncodings = (apiKey: string): readonly string[] =>
  apiKey.length < SHORTEST ? [] : encodingsOf(apiKey);

/** Removes headers that contain the gateway's key. */
export function removeHeadersWithKey({ raw }: HeaderList, forms: readonly string[]): void {
  for (let at = raw.length - 1; at > 0; at -= 2) {
    const value = raw[at] ?? '';
    if (forms.some((form) => value.includes(form))) raw.splice(at - 1, 2);
  }
}

/** Shorter forms may be words of an answer, such as the key `ollama` of a model on this machine; keys of providers are longer. */
const RARE = 16;

/** The encodings of a key that no answer has by chance. Of errors, all are redacted. */
export const rareEncodings = (encodings: readonly string[]): readonly string[] =>
  encodings.filter(({ length }) => length >= RARE);

/** Redacts the key in a body. Returns the same buffer if the key does not occur. */
export function redactKey(bytes: Buffer, forms: readonly string[]): Buffer {
  if (!forms.some((form) => bytes.includes(form, 0, 'latin1'))) return bytes;
  const text = bytes.toString('latin1');
  const cleaned = forms.reduce((current, form) => current.replaceAll(form, '<redacted>'), text);
  return Buffer.from(cleaned, 'latin1');
}

/** Redacts the key in the reason of a closing frame, which has room for the beginning of a long key only. */
export function redactReason(reason: Buffer, forms: readonly string[]): Buffer {
  const text = redactKey(reason, forms).toString('latin1');
  for (const form of forms)
    for (let length = Math.min(form.length, text.length); length >= SHORTEST; length -= 1)
      if (text.endsWith(form.slice(0, length)))
        return Buffer.from(`${text.slice(0, -length)}<redacted>`, 'latin1');
  return Buffer.from(text, 'latin1');
}
