import { gateway, type TestGateway, type TestGatewayOptions } from './gateway.ts';
import { json } from './idp.ts';
import { freePort } from './ports.ts';
import { send } from './send.ts';
import { seconds, signingKey, token } from './tokens.ts';
import { type HttpUpstream, httpUpstream } from './upstream.ts';

export const SECRET = { OIDC_COOKIE_SECRET: '0123456789abcdef0123456789abcdef' };

/** Cookies of one browser, which follows redirects only when it is told to. */
export class Browser {
  readonly cookies = new Map<string, string>();

  async open(url: string, headers: Record<string, string> = {}): ReturnType<typeof send> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const own = { accept: 'text/html,*/*;q=0.8', ...(cookie === '' ? {} : { cookie }) };
    const reply = await send(url, { headers: { ...own, ...headers } });
    for (const field of [reply.headers['set-cookie'] ?? []].flat()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(field) ?? [];
      if (/Max-Age=0/i.test(field) || /expires=Thu, 01 Jan 1970/i.test(field)) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return reply;
  }

  /** Follows redirects until there is none. */
  async follow(url: string): Promise<{ url: string; reply: Awaited<ReturnType<typeof send>> }> {
    let at = url;
    for (let hops = 0; hops < 20; hops += 1) {
      const reply = await this.open(at);
      const location = reply.headers['location'];
      if (typeof location !== 'string') return { url: at, reply };
      at = new URL(location, at).href;
    }
    throw new Error('too many redirects');
  }
}

export interface Site extends AsyncDisposable {
  readonly gate: TestGateway;
  readonly url: string;
}

/** A gateway with `oidc` in front of a backend, at a port that its redirect URI names. */
export async function site(
  upstream: HttpUpstream,
  policy: object,
  {
    port,
    tls,
    more: other = {},
    ...options
  }: TestGatewayOptions & { port?: number; tls?: object; more?: object } = {},
): Promise<Site> {
  const own = port ?? (await freePort());
  // The certificates of tests are for this name.
  const url = tls === undefined ? `http://127.0.0.1:${own}` : `https://localhost:${own}`;
  const route = {
    name: 'pages',
    matches: [{ path: { pathPrefix: '/app' } }],
    policies: { oidc: { redirectURI: `${url}/oauth/callback`, ...policy } },
    backends: [{ host: upstream.address }],
  };
  const more = { frontendPolicies: { accessLog: { add: { subject: 'default(jwt.sub, "nobody")' } } } };
  const yaml = JSON.stringify({
    gateways: { default: { port: own, tls, routes: [route] } },
    ...more,
    ...other,
  });
  const gate = await gateway(yaml, { env: SECRET, ...options });
  return { gate, url, [Symbol.asyncDispose]: () => gate.close() };
}

export interface Scripted extends HttpUpstream {
  issuer: string;
  /** Claims of ID tokens, instead of the usual ones. */
  claims: Record<string, unknown>;
  /** Of the token endpoint, instead of tokens. */
  answer: { status: number; error_description?: string } | undefined;
  /** More members of the answers with tokens, or others instead. */
  issued: Record<string, unknown>;
  /** More members of its metadata. */
  metadata: Record<string, unknown>;
  /** The refresh token that it issues next, and accepts once; none if undefined. */
  refreshToken: string | undefined;
  /** Forms that the token endpoint and the revocation endpoint got. */
  forms(path: '/token' | '/revoke', grant?: string): URLSearchParams[];
}

/** A provider that signs in at once, and says what a test wants it to say. */
export async function scripted(): Promise<Scripted> {
  const key = signingKey('k1');
  const nonces = new Map<string, string>();
  const accepted = new Set<string>();
  const provider: Scripted = Object.assign(
    await httpUpstream((_, response, { target, body }) => {
      const url = new URL(target, provider.issuer);
      if (url.pathname === '/.well-known/openid-configuration')
        return json(response, 200, {
          issuer: provider.issuer,
          authorization_endpoint: `${provider.issuer}/authorize`,
          token_endpoint: `${provider.issuer}/token`,
          jwks_uri: `${provider.issuer}/keys`,
          ...provider.metadata,
        });
      if (url.pathname === '/keys') return json(response, 200, { keys: [key.jwk] });
      if (url.pathname === '/authorize') {
        const code = `code-${nonces.size}`;
        nonces.set(code, url.searchParams.get('nonce') ?? '');
        const back = new URL(url.searchParams.get('redirect_uri') ?? '');
        back.searchParams.set('code', code);
        back.searchParams.set('state', url.searchParams.get('state') ?? '');
        return response.writeHead(302, { location: back.href }).end();
      }
      if (provider.answer !== undefined) {
        const { status, ...more } = provider.answer;
        return json(response, status, { error: 'invalid_grant', ...more });
      }
      if (url.pathname === '/revoke') return response.end();
      const form = new URLSearchParams(body);
      const code = form.get('code') ?? '';
      const nonce = nonces.get(code);
      if (nonce === undefined && !accepted.delete(form.get('refresh_token') ?? ''))
        return json(response, 400, { error: 'invalid_grant' });
      nonces.delete(code);
      const { refreshToken } = provider;
      if (refreshToken !== undefined) accepted.add(refreshToken);
      const claims = {
        iss: provider.issuer,
        aud: 'web',
        sub: 'alice',
        iat: seconds(),
        exp: seconds(600),
        nonce,
      };
      return json(response, 200, {
        access_token: 'a',
        token_type: 'Bearer',
        id_token: token(key, { ...claims, ...provider.claims }),
        refresh_token: refreshToken,
        ...provider.issued,
      });
    }),
    {
      issuer: '',
      claims: {},
      issued: {},
      answer: undefined as Scripted['answer'],
      metadata: {},
      refreshToken: undefined as string | undefined,
      forms: (path: string, grant?: string) =>
        provider.received
          .filter(({ target }) => target === path)
          .map(({ body }) => new URLSearchParams(body))
          .filter((form) => grant === undefined || form.get('grant_type') === grant),
    },
  );
  provider.issuer = `http://${provider.address}`;
  return provider;
}

export const client = (issuer: string): object => ({ issuer, clientId: 'web', clientSecret: 'c/s+1' });
export const backend = (): Promise<HttpUpstream> => httpUpstream((_, response) => response.end('the page'));
