import { z } from 'zod';
import { list } from '../../../core/schema/mapping.ts';
import { textOrFile } from '../../transport/text-or-file.ts';
import { httpUrl, jwksSchema } from '../jwt/key-source.ts';

const logoutSchema = z
  .strictObject({
    path: z
      .string()
      .refine(isOwnPath, { error: 'expected a path such as `/oauth/logout`, without query and fragment' })
      .describe('Path that ends the session of the browser that opens it. It belongs to the policy.'),
    redirectURI: httpUrl
      .optional()
      .describe(
        'Where browsers go after they were signed out. The provider must know it (`post_logout_redirect_uri`). Default: a page of the provider, or a short text.',
      ),
  })
  .describe('Signs browsers out: here, and at the provider if its metadata has `end_session_endpoint`.');

export const schema = z.lazy(() =>
  z
    .strictObject({
      issuer: httpUrl.describe('Issuer: must equal that of the metadata and the `iss` claim of ID tokens.'),
      discovery: jwksSchema
        .optional()
        .describe(
          'Metadata of the provider: inline JSON, `url` or `file`. Default: `/.well-known/openid-configuration` of the issuer.',
        ),
      authorizationEndpoint: httpUrl
        .nullish()
        .describe('Where browsers sign in. With `tokenEndpoint` and `jwks`, no metadata is read.'),
      tokenEndpoint: httpUrl.nullish().describe('Where the gateway redeems codes.'),
      tokenEndpointAuth: z
        .enum(['clientSecretBasic', 'clientSecretPost'])
        .nullish()
        .describe('How the gateway authenticates at `tokenEndpoint`; `clientSecretBasic` by default.'),
      jwks: jwksSchema.optional().describe('Keys of ID tokens: inline JSON, `url` or `file`.'),
      clientId: z.string().min(1).describe('Id of the client at the provider.'),
      clientSecret: textOrFile.meta({ secret: true }).describe('Secret of the client, or `{ file: … }`.'),
      redirectURI: httpUrl
        .refine((text) => isCallback(text), {
          error: 'expected a URL with a path, and without user, query and fragment',
        })
        .describe(
          'URL of the gateway that browsers return to, such as `https://example.com/oauth/callback`. Its path belongs to the policy.',
        ),
      scopes: list(
        'Scopes to request besides `openid`. Many providers issue refresh tokens for `offline_access` only.',
        z.string().min(1),
      ),
      endSessionEndpoint: httpUrl
        .nullish()
        .describe('Where the provider signs browsers out, if no metadata is read. Used by `logout`.'),
      logout: logoutSchema.optional(),
    })
    .superRefine((value, context) => {
      const { authorizationEndpoint, tokenEndpoint, jwks, discovery, tokenEndpointAuth } = value;
      const explicit = [authorizationEndpoint, tokenEndpoint, jwks].filter((part) => part != null).length;
      const report = (message: string, path: string[] = []): void =>
        context.addIssue({ code: 'custom', path, message, params: { code: 'AGW0105' } });
      if (explicit !== 0 && explicit !== 3)
        report('expected all of `authorizationEndpoint`, `tokenEndpoint`, `jwks`, or none');
      else if (explicit === 3 && discovery !== undefined)
        report('no metadata is read, because the endpoints are configured', ['discovery']);
      else if (explicit === 0 && tokenEndpointAuth != null)
        report('the metadata decides, unless `tokenEndpoint` is configured', ['tokenEndpointAuth']);
      if (value.endSessionEndpoint != null && explicit === 0)
        report('the metadata decides, unless `tokenEndpoint` is configured', ['endSessionEndpoint']);
      else if (value.endSessionEndpoint != null && value.logout === undefined)
        report('it is used by `logout` only, which is not set', ['endSessionEndpoint']);
      if (value.logout !== undefined && pathOf(value.redirectURI) === value.logout.path)
        report('`redirectURI` has the same path: browsers return to it from the sign-in', ['logout', 'path']);
    })
    .describe('Signs browsers in at an OpenID provider, with a session in encrypted cookies.'),
);

export type Config = z.output<typeof schema>;

function isCallback(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { pathname, search, hash, username, password } = new URL(text);
  return pathname !== '/' && !/%2f|%5c/i.test(pathname) && search + hash + username + password === '';
}

function pathOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).pathname : undefined;
}

/** Requests are compared with it in canonical form, which the path of a URL nearly is. */
function isOwnPath(path: string): boolean {
  return (
    path !== '/' && /^\/(?![/\\])/.test(path) && pathOf(`http://a${path}`) === path && !/%2f|%5c/i.test(path)
  );
}
