import { z } from 'zod';
import { AppError, messageOf } from '../../../core/errors.ts';
import { membersOf } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import {
  checkIssuer,
  firstMetadata,
  isHttpUrl,
  metadataUrls,
  openIdConfiguration,
  withoutSlash,
} from '../../credentials/issuer-metadata.ts';
import type { DocumentClient } from '../../transport/upstream/document-client.ts';
import { wellKnownKeys } from '../jwt/issuer.ts';
import { entraEndpoints } from './entra.ts';

/** Properties of a kind of identity provider. */
export interface Provider {
  /** URL of its signing keys, if not configured. Absent if its metadata says where they are. */
  keySetUrl?(issuer: string): string;
  /** URLs of its metadata: the first that exists is read. */
  metadataUrls(issuer: string): readonly string[];
  /** URL of client registration if its metadata has none; undefined if clients cannot register. */
  registrationUrl(issuer: string): string | undefined;
  /** Whether the gateway acts as the authorization server: its copy of the metadata has the gateway as issuer. */
  readonly isFronted: boolean;
  /** Value of the `typ` claim of its access tokens. */
  readonly accessTokenType: string | undefined;
  /**
   * Whether it reads the audience of tokens from a parameter `audience` of the authorization request, and not from
   * `resource` (RFC 8707).
   */
  readonly audienceParameter?: boolean;
  /** Whether the gateway answers registrations because the provider has none: `clientId` must be configured. */
  readonly needsClientId?: boolean;
  /** The issuer that its metadata names, if that is not the issuer of tokens. */
  metadataIssuer?(issuer: string): string;
  /** Whether clients use endpoints of the gateway, because it rejects `resource` (RFC 8707). */
  readonly rejectsResource?: boolean;
}

/** Any provider that follows RFC 8414 or OpenID Connect Discovery. */
const standard: Provider = {
  metadataUrls,
  registrationUrl: () => undefined,
  isFronted: false,
  accessTokenType: undefined,
};

/** A provider with realms: the specification's `idpx`. */
const idpx: Provider = {
  keySetUrl: (issuer) => `${withoutSlash(issuer)}/protocol/openid-connect/certs`,
  metadataUrls: (issuer) => [openIdConfiguration(issuer)],
  registrationUrl: (issuer) => `${withoutSlash(issuer)}/clients-registrations/openid-connect`,
  isFronted: true,
  accessTokenType: 'Bearer',
};

/** Auth0 documentation, "Call Your API Using the Authorization Code Flow with PKCE". */
const auth0: Provider = {
  ...standard,
  keySetUrl: wellKnownKeys,
  isFronted: true,
  audienceParameter: true,
};

/** Okta developer documentation, "OpenID Connect & OAuth 2.0": clients register at the organization, not at the issuer. */
const okta: Provider = {
  ...standard,
  keySetUrl: wellKnownKeys,
  isFronted: true,
  metadataUrls: (issuer) => [openIdConfiguration(issuer)],
  registrationUrl: (issuer) => `${new URL(issuer).origin}/oauth2/v1/clients`,
  audienceParameter: true,
};

/** `https://api.descope.com/v1/apps/agentic/{project}/{server}`; undefined for another issuer of Descope. */
function agenticIssuer(issuer: string): { origin: string; project: string; server: string } | undefined {
  const { origin, pathname } = new URL(issuer);
  const found = /^\/v1\/apps\/agentic\/([^/]+)\/([^/]+)/.exec(pathname);
  if (found === null) return undefined;
  const [, project = '', server = ''] = found;
  return { origin, project, server };
}

/** Descope documentation, "Agentic Identity Hub": keys belong to the project, registration to the MCP server. */
const descope: Provider = {
  ...standard,
  isFronted: true,
  keySetUrl(issuer) {
    const agentic = agenticIssuer(issuer);
    return wellKnownKeys(agentic === undefined ? issuer : `${agentic.origin}/${agentic.project}`);
  },
  metadataUrls: (issuer) => [openIdConfiguration(issuer)],
  registrationUrl(issuer) {
    const agentic = agenticIssuer(issuer);
    if (agentic === undefined) return undefined;
    return `${agentic.origin}/v1/mgmt/mcp/client/${agentic.project}/${agentic.server}/register`;
  },
};

/** authentik documentation, "OAuth2 provider": the issuer is an application, and clients cannot register. */
const authentik: Provider = {
  ...standard,
  isFronted: true,
  keySetUrl: (issuer) => `${withoutSlash(issuer)}/jwks/`,
  metadataUrls: (issuer) => [openIdConfiguration(issuer)],
  needsClientId: true,
};

/** Microsoft Entra ID. Its metadata does not say that it supports PKCE, without which MCP clients refuse it. */
const entra: Provider = {
  ...standard,
  isFronted: true,
  keySetUrl: (issuer) => entraEndpoints(issuer).keys,
  metadataUrls: (issuer) => [openIdConfiguration(entraEndpoints(issuer).issuer)],
  metadataIssuer: (issuer) => entraEndpoints(issuer).issuer,
  needsClientId: true,
  rejectsResource: true,
};

/** A realm of Keycloak, and the specification's `idpx`, are the same kind. */
const PROVIDERS = { idpx, keycloak: idpx, auth0, okta, descope, authentik, entra } as const;

const none = z.strictObject({});

export const providerSchema = z.lazy(() =>
  z
    .strictObject({
      idpx: none.optional().describe('A provider whose issuer is a realm (`…/realms/<realm>`).'),
      keycloak: none.optional().describe('Another name of `idpx`.'),
      auth0: none.optional().describe('Auth0: the first of `audiences` is requested as `audience`.'),
      okta: none
        .optional()
        .describe(
          'Okta: the first of `audiences` is requested as `audience`; clients register at the organization.',
        ),
      descope: none.optional().describe('Descope: keys of the project; clients register at the MCP server.'),
      entra: none.optional().describe('Microsoft Entra ID, which registers no clients: it needs `clientId`.'),
      authentik: none.optional().describe('authentik, which registers no clients: it needs `clientId`.'),
    })
    .superRefine((value, context) => {
      if (Object.keys(value).length === 1) return;
      context.addIssue({
        code: 'custom',
        message: `expected exactly one of ${Object.keys(PROVIDERS)
          .map((name) => `\`${name}\``)
          .join(', ')}`,
        params: { code: 'AGW0105' },
      });
    }),
);

/** Returns the configured kind of provider, by default one that follows the standards. */
export function providerOf(config: z.output<typeof providerSchema> | undefined): Provider {
  for (const [name, provider] of Object.entries(PROVIDERS))
    if (membersOf(config)[name] !== undefined) return provider;
  return standard;
}

/** Authorization-server metadata (RFC 8414 §2). Only issuer and endpoint URLs have been checked. */
export type Metadata = Readonly<Record<string, unknown>>;

export interface ServerMetadataOptions {
  readonly issuer: string;
  readonly provider: Provider;
  /** Whether the gateway answers registrations itself, so that clients can register at any provider. */
  readonly answersRegistration: boolean;
  /** What clients request as `audience`, if the provider needs that. */
  readonly audience: string | undefined;
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
    const own = {
      ...(registers ? { registration_endpoint: registrationEndpoint } : {}),
      ...this.#withAudience(document),
    };
    if (!provider.isFronted) return { ...document, ...own };
    const gateway = registrationEndpoint.replace(/\/[^/]*$/, '');
    const proxied =
      provider.rejectsResource === true
        ? {
            authorization_endpoint: `${gateway}/authorize`,
            token_endpoint: `${gateway}/token`,
            code_challenge_methods_supported: ['S256'],
          }
        : {};
    // RFC 9207: the provider's `iss` in a callback would differ from this issuer.
    const { authorization_response_iss_parameter_supported: _dropped, ...kept } = document;
    return { ...kept, issuer, ...own, ...proxied };
  }

  /** The authorization endpoint with the audience: clients keep parameters that it has (RFC 6749 §3.1). */
  #withAudience({ authorization_endpoint: endpoint }: Metadata): Metadata {
    const { provider, audience } = this.#options;
    // The schema asks for an audience, but the type of its list does not say that it has one.
    if (provider.audienceParameter !== true || audience === undefined || typeof endpoint !== 'string')
      return {};
    const url = new URL(endpoint);
    url.searchParams.set('audience', audience);
    return { authorization_endpoint: url.href };
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
      const { value } = await firstMetadata(provider.metadataUrls(issuer), client, (metadata) =>
        checkedMetadata(metadata, provider.metadataIssuer?.(issuer) ?? issuer),
      );
      this.#document = value;
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
function checkedMetadata(value: Metadata, issuer: string): Metadata {
  checkIssuer(value['issuer'], issuer);
  return Object.fromEntries(Object.entries(value).filter(([name, member]) => isUsable(name, member)));
}

/** Clients check types, and refuse the whole document because of one member: null is none (RFC 8414 §3.2). */
function isUsable(name: string, member: unknown): boolean {
  if (/_(?:endpoint|uri)$/.test(name)) return isHttpUrl(member);
  if (LISTS.has(name)) return Array.isArray(member) && member.length > 0 && member.every(isString);
  return member !== null;
}

const isString = (value: unknown): boolean => typeof value === 'string';

/** Members that are lists of texts (RFC 8414 §2), as far as MCP clients read them. */
const LISTS = new Set([
  'scopes_supported',
  'response_types_supported',
  'response_modes_supported',
  'grant_types_supported',
  'token_endpoint_auth_methods_supported',
  'code_challenge_methods_supported',
]);
