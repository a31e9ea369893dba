import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { gateway, type TestGateway, type TestGatewayOptions } from './gateway.ts';
import { INITIALIZE, type Json, type McpSession, openSession } from './mcp.ts';
import { type McpUpstream, mcpUpstream, type Received } from './mcp-upstream.ts';
import type { OidcProvider } from './oidc-provider.ts';
import { freePort } from './ports.ts';
import { type HttpReply, send } from './send.ts';

export const SESSION_KEY = 'a5'.repeat(32);

/** An MCP server that accepts tokens of a provider, or what `accepts` says. */
export function protectedServer(
  issuer: string | (() => string),
  options: {
    /** Status with which it refuses a token that is not expired. */
    accepts?: (claims: Json, request: Received) => 401 | 403 | undefined;
    scopes?: string[];
  } = {},
): Promise<McpUpstream> {
  const { accepts = () => undefined, scopes = ['read'] } = options;
  return mcpUpstream({
    name: 'protected',
    script: (request, response) => {
      const origin = `http://${String(request.headers['host'])}`;
      if (request.path === '/.well-known/oauth-protected-resource/mcp') {
        const metadata = {
          resource: `${origin}/mcp`,
          authorization_servers: [typeof issuer === 'string' ? issuer : issuer()],
          scopes_supported: scopes,
        };
        return json(response, 200, metadata);
      }
      const claims = claimsOf(request);
      const metadata = `resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`;
      const isExpired = claims === undefined || claims.exp * 1000 < Date.now();
      const status = isExpired ? 401 : accepts(claims, request);
      if (status === undefined) return false;
      response.setHeader(
        'www-authenticate',
        status === 403
          ? `Bearer error="insufficient_scope", scope="write", ${metadata}`
          : `Bearer ${metadata}, scope="${scopes.join(' ')}"`,
      );
      return json(response, status, { error: 'refused' });
    },
  });
}

/** The claims of the token of a request; undefined without one. */
export function claimsOf({ headers }: Pick<Received, 'headers'>): Json {
  const [, payload] = /^Bearer [^.]+\.([^.]+)\./.exec(headers['authorization'] as string) ?? [];
  return payload === undefined ? undefined : JSON.parse(Buffer.from(payload, 'base64url').toString());
}

/** The accounts as which calls of tools have arrived at a server. */
export const actors = (server: McpUpstream): string[] =>
  server.of('tools/call').map((request) => claimsOf(request)?.sub);

function json(response: ServerResponse, status: number, body: object): true {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  return true;
}

export const USERS = { ann: 'pass-ann', bob: 'pass-bob' } as const;
export type UserName = keyof typeof USERS;

export const basic = (user: UserName): Record<string, string> => ({
  authorization: `Basic ${Buffer.from(`${user}:${USERS[user]}`).toString('base64')}`,
});

const htpasswd = Object.entries(USERS)
  .map(([user, password]) => `${user}:{SHA}${createHash('sha1').update(password).digest('base64')}`)
  .join('\n');
export const PASSWORDS = { basicAuth: { mode: 'strict', htpasswd } };

export interface SignInGateway extends TestGateway {
  /** URL of the page. */
  readonly page: string;
  /** A session of a user, with these capabilities of the client. */
  session(headers: Record<string, string>, capabilities?: object): Promise<McpSession>;
}

interface Settings {
  readonly oauth?: object;
  readonly policies?: object;
  readonly pagePolicies?: object;
  readonly signIn?: object;
  readonly config?: object;
  readonly mcp?: object;
  readonly port?: number;
  /** Port of the page for browsers, if another gateway has it. */
  readonly publicPort?: number | undefined;
}

/** The configuration of a gateway at a port, with the route `/mcp` to targets, and the page. `policies` are those of both. */
export function signInConfig(
  port: number,
  servers: Readonly<Record<string, Pick<McpUpstream, 'url'>>>,
  settings: Settings = {},
): { readonly page: string; readonly config: object } {
  const { oauth = {}, policies = PASSWORDS, signIn = {}, config = {}, mcp = {} } = settings;
  const { pagePolicies = policies, publicPort = port } = settings;
  const page = `http://127.0.0.1:${publicPort}/sign-in`;
  const targets = Object.entries(servers).map(([name, { url }]) => ({
    name,
    mcp: { host: url },
    policies: { backendAuth: { oauth } },
  }));
  const routes = [
    {
      name: 'tools',
      matches: [{ path: { pathPrefix: '/mcp' } }],
      policies,
      backends: [{ mcp: { targets, ...mcp } }],
    },
    {
      name: 'sign-in',
      matches: [{ path: { pathPrefix: '/sign-in' } }],
      policies: { ...pagePolicies, mcpSignIn: {} },
    },
  ];
  const own = {
    database: { url: 'sqlite://./agctl.db' },
    session: { key: SESSION_KEY },
    mcp: { signIn: { url: page, ...signIn } },
    ...config,
  };
  return { page, config: { config: own, gateways: { default: { port, routes } } } };
}

export async function signInGateway(
  folder: string,
  servers: Readonly<Record<string, McpUpstream>>,
  options: TestGatewayOptions & Settings = {},
): Promise<SignInGateway> {
  const { page, config } = signInConfig(options.port ?? (await freePort()), servers, options);
  const gate = await gateway(JSON.stringify(config), { folder, ...options });
  return Object.assign(gate, {
    page,
    session: (headers: Record<string, string>, capabilities?: object) =>
      userSession(gate.url, headers, capabilities),
  });
}

/** A session of a user, with these capabilities of the client. */
export function userSession(
  url: string,
  headers: Record<string, string>,
  capabilities: object = {},
): Promise<McpSession> {
  const params = { ...INITIALIZE.params, protocolVersion: '2025-11-25', capabilities };
  return openSession(`${url}/mcp`, headers, { ...INITIALIZE, params });
}

/** The link and the code in what a client was given. */
export function linkIn(answer: { text: string }): { url: string; code: string | undefined } {
  const [url = ''] = /https?:\/\/[\w.]+(?::\d+)?\/sign-in\?link_token=[\w-]+/.exec(answer.text) ?? [];
  const [code] = /[B-Z]{4}-[B-Z]{4}/.exec(answer.text) ?? [];
  return { url, code };
}

/** A browser with cookies, of a user of the gateway. */
export class UserBrowser {
  readonly cookies = new Map<string, string>();
  readonly #headers: Record<string, string>;

  constructor(headers: Record<string, string> = {}) {
    this.#headers = headers;
  }

  async open(
    url: string,
    form?: Record<string, string>,
    headers: Record<string, string> = {},
  ): Promise<HttpReply> {
    const { host, origin } = new URL(url);
    const own = [...this.cookies].filter(([name]) => name.startsWith(`${host} `));
    const cookie = own.map(([name, value]) => `${name.slice(host.length + 1)}=${value}`).join('; ');
    const reply = await send(url, {
      headers: {
        connection: 'close',
        accept: 'text/html,*/*;q=0.8',
        ...(cookie !== '' && { cookie }),
        ...this.#headers,
        ...(form !== undefined && { origin, 'content-type': 'application/x-www-form-urlencoded' }),
        ...headers,
      },
      ...(form !== undefined && { method: 'POST', body: new URLSearchParams(form).toString() }),
    });
    for (const field of [reply.headers['set-cookie'] ?? []].flat()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(field) ?? [];
      if (/Max-Age=0|expires=Thu, 01 Jan 1970/i.test(field)) this.cookies.delete(`${host} ${name}`);
      else this.cookies.set(`${host} ${name}`, value);
    }
    return reply;
  }

  /** Follows redirects until one leads to an address with this beginning, or there is none. */
  async follow(first: HttpReply, at: string, until = 'none:'): Promise<{ url: string; reply: HttpReply }> {
    let reply = first;
    let url = at;
    for (let hops = 0; hops < 20; hops += 1) {
      const { location } = reply.headers;
      if (location === undefined) return { url, reply };
      url = new URL(location, url).href;
      if (url.startsWith(until)) return { url, reply };
      reply = await this.open(url);
    }
    throw new Error('too many redirects');
  }

  /** Signs in with a link, as a person does. */
  async signIn({ url, code = '' }: { url: string; code?: string | undefined }): Promise<HttpReply> {
    const shown = await this.open(url);
    if (shown.status !== 200) return shown;
    return (await this.follow(await this.open(url, { code }), url)).reply;
  }
}

export type { OidcProvider };
