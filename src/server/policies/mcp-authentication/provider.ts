import { z } from 'zod';

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
