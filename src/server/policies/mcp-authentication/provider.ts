import { z } from 'zod';
import { AppError, messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import type { DocumentClient } from '../jwt/document.ts';

/** Properties of a kind of identity provider. */
export interface Provider {
  /** URL of its signing keys, if not configured. */
  keySetUrl(issuer: string): string;
  /** URL of its metadata: OpenID Connect discovery or RFC 8414. */
  metadataUrl(issuer: string): string;
  /** URL of client registration if its metadata has none; undefined if clients cannot register. */
  registrationUrl(issuer: string): string | undefined;
  /** Whether the gateway acts as the authorization server: its copy of the metadata has the gateway as issuer. */
  readonly isFronted: boolean;
  /** Value of the `typ` claim of its access tokens. */
  readonly accessTokenType: string | undefined;
}

const withoutSlash = (issuer: string): string => issuer.replace(/\/+$/, '');

/** Any provider that follows RFC 8414. */
const standard: Provider = {
  keySetUrl: (issuer) => `${withoutSlash(issuer)}/.well-known/jwks.json`,
  // RFC 8414 §3.1: the well-known segment goes between host and path.
  metadataUrl: (issuer) => {
    const { origin, pathname } = new URL(issuer);
    return `${origin}/.well-known/oauth-authorization-server${withoutSlash(pathname)}`;
  },
  registrationUrl: () => undefined,
  isFronted: false,
  accessTokenType: undefined,
};

/** A provider with realms: the specification's `idpx`. */
const idpx: Provider = {
  keySetUrl: (issuer) => `${withoutSlash(issuer)}/protocol/openid-connect/certs`,
  metadataUrl: (issuer) => `${withoutSlash(issuer)}/.well-known/openid-configuration`,
  registrationUrl: (issuer) => `${withoutSlash(issuer)}/clients-registrations/openid-connect`,
  isFronted: true,
  accessTokenType: 'Bearer',
};

const none = z.strictObject({});

export const providerSchema = z
  .strictObject({
    idpx: none.optional().describe('A provider whose issuer is a realm (`…/realms/<realm>`).'),
    keycloak: none.optional().describe('Another name of `idpx`.'),
  })
  .superRefine((value, context) => {
    if (Object.values(value).filter((kind) => kind !== undefined).length === 1) return;
    context.addIssue({
      code: 'custom',
      message: 'expected exactly one of `idpx`, `keycloak`',
      params: { code: 'AGW0105' },
    });
  });

/** Returns the configured kind of provider, by default one that follows RFC 8414. */
export function providerOf(config: z.output<typeof providerSchema> | undefined): Provider {
  return config === undefined ? standard : idpx;
}

/** Authorization-server metadata (RFC 8414 §2). Only issuer and endpoint URLs have been checked. */
export type Metadata = Readonly<Record<string, unknown>>;

export interface ServerMetadataOptions {
  readonly issuer: string;
  readonly provider: Provider;
  /** Whether the gateway answers registrations itself, so that clients can register at any provider. */
  readonly answersRegistration: boolean;
  readonly client: DocumentClient;
  readonly log: Log;
}

/** The provider's metadata, cached for `LIMITS.serverMetadataLifetime`. After a failed request, the old one stays in use. */
export class ServerMetadata {
  readonly #options: ServerMetadataOptions;
  #document: Metadata | undefined;
  #problem = '';
  /** Until then, in ms of `performance.now()`, the last result is used: callers are not authenticated. */
  #nextFetchAt = 0;
  #fetching: Promise<void> | undefined;

  constructor(options: ServerMetadataOptions) {
    this.#options = options;
  }

  /**
   * Metadata for clients of the gateway: as published, except for the registration endpoint, and for the issuer if the
   * gateway acts as the authorization server. Rejects with `provider_failed`.
   */
  async read(issuer: string, registrationEndpoint: string): Promise<Metadata> {
    const document = await this.#original();
    const { provider, answersRegistration } = this.#options;
    const registers = answersRegistration || this.#registrationUrl(document) !== undefined;
    const own = registers ? { registration_endpoint: registrationEndpoint } : {};
    if (!provider.isFronted) return { ...document, ...own };
    // RFC 9207: the provider's `iss` in a callback would differ from this issuer.
    const { authorization_response_iss_parameter_supported: _dropped, ...kept } = document;
    return { ...kept, issuer, ...own };
  }

  /** URL of the provider's client registration, even without metadata; undefined if it does not support that. */
  async registrationUrl(): Promise<string | undefined> {
    return this.#registrationUrl(await this.#original().catch(() => ({})));
  }

  #registrationUrl({ registration_endpoint: endpoint }: Metadata): string | undefined {
    const { issuer, provider } = this.#options;
    // Only on the provider's origin: its metadata must not direct requests of the gateway elsewhere.
    if (typeof endpoint === 'string' && new URL(endpoint).origin === new URL(issuer).origin) return endpoint;
    return provider.registrationUrl(issuer);
  }

  async #original(): Promise<Metadata> {
    if (performance.now() >= this.#nextFetchAt) {
      this.#fetching ??= this.#fetch().finally(() => {
        this.#fetching = undefined;
      });
      await this.#fetching;
    }
    if (this.#document === undefined) throw new AppError('provider_failed', { detail: this.#problem });
    return this.#document;
  }

  async #fetch(): Promise<void> {
    const { provider, issuer, client, log } = this.#options;
    try {
      const { value } = await client.fetch(provider.metadataUrl(issuer), LIMITS.metadataBytes);
      this.#document = checkedMetadata(value, issuer);
      this.#nextFetchAt = performance.now() + LIMITS.serverMetadataLifetime;
    } catch (error) {
      this.#problem = messageOf(error);
      log.warn('auth', 'metadata of the identity provider could not be read', { problem: this.#problem });
      const delay = this.#document === undefined ? LIMITS.retryDelayMax : LIMITS.keyRefetchInterval;
      this.#nextFetchAt = performance.now() + delay;
    }
  }
}

/** Throws for metadata of another issuer. Removes endpoints that are not http(s) URLs, because clients open them. */
function checkedMetadata(value: unknown, issuer: string): Metadata {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error('its metadata is not a JSON object');
  const document = value as Record<string, unknown>;
  if (document['issuer'] !== issuer)
    throw new Error(
      `its metadata names the issuer ${String(document['issuer']).slice(0, 200)}, expected ${issuer}`,
    );
  return Object.fromEntries(
    Object.entries(document).filter(([key, member]) => !/_(?:endpoint|uri)$/.test(key) || isHttpUrl(member)),
  );
}

function isHttpUrl(value: unknown): boolean {
  return typeof value === 'string' && /^https?:\/\//.test(value) && URL.canParse(value);
}
