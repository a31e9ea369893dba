import { z } from 'zod';

/** What is special about a kind of identity provider. */
export interface Provider {
  /** Where its signing keys are, when the configuration does not say. */
  keySetUrl(issuer: string): string;
  /** Where its metadata is: OpenID Connect discovery, or RFC 8414. */
  metadataUrl(issuer: string): string;
  /** Where clients register, when its metadata does not say; undefined when they cannot. */
  registrationUrl(issuer: string): string | undefined;
  /** Whether the gateway stands in for the authorization server: metadata names the gateway as issuer. */
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

export function providerOf(config: z.output<typeof providerSchema> | undefined): Provider {
  return config === undefined ? standard : idpx;
}
