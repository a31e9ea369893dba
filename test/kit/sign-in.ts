import { chaos } from './config.ts';
import { gateway, type TestGateway, type TestGatewayOptions } from './gateway.ts';
import { AUDIENCE } from './idp.ts';
import { freePort } from './ports.ts';
import { type HttpReply, type SendOptions, send } from './send.ts';

/** Where the specification's gateway is reached; tests that only look at answers need no such host. */
export const BASE_URL = 'http://gateway.example:3000';
export const METADATA_URL = `${BASE_URL}/.well-known/oauth-protected-resource/mcp`;

/** `mcpAuthentication` as the specification uses it, with other members where given. */
export function signIn(issuer: string, more: object = {}): { mcpAuthentication: object } {
  return {
    mcpAuthentication: {
      mode: 'strict',
      issuer,
      audiences: [AUDIENCE],
      provider: { idpx: {} },
      resourceMetadata: {
        resource: `${BASE_URL}/mcp`,
        scopesSupported: ['read', 'write'],
        bearerMethodsSupported: ['header'],
      },
      ...more,
    },
  };
}

export interface ProtectedRoute {
  readonly name?: string;
  readonly policies: object;
  /** Answers `reached` itself when there are none. */
  readonly backends?: readonly object[];
  readonly path?: string;
}

/** A gateway whose routes have these policies; the first one is at /mcp unless it says otherwise. */
export function protectedGateway(
  routes: readonly ProtectedRoute[],
  { port = 0, more = {}, ...options }: TestGatewayOptions & { port?: number; more?: object } = {},
): Promise<TestGateway> {
  const configured = routes.map(({ name = 'tools', policies, backends, path = '/mcp' }) => ({
    name,
    matches: [{ path: { pathPrefix: path } }],
    policies: backends === undefined ? { directResponse: { body: 'reached' }, ...policies } : policies,
    ...(backends === undefined ? {} : { backends }),
  }));
  const config = {
    config: { adminAddr: 'off', connectionTerminationDeadline: '100ms' },
    gateways: { main: { port, routes: configured } },
    ...more,
  };
  return gateway(JSON.stringify(config), options);
}

export interface SpecifiedParts {
  /** Members of `mcpAuthentication` beside those of the specification, or instead of them. */
  readonly authentication?: object;
  /** Other policies of the route. */
  readonly policies?: object;
  /** Scopes to advertise; none when undefined. */
  readonly scopes?: readonly string[] | undefined;
}

/** The gateway of the specification in front of one stdio server, at the very address that its metadata names. */
export async function specifiedGateway(issuer: string, parts: SpecifiedParts = {}): Promise<TestGateway> {
  const { authentication = {}, policies = {}, scopes } = parts;
  const port = await freePort();
  const resourceMetadata = {
    resource: `http://127.0.0.1:${port}/mcp`,
    ...(scopes === undefined ? {} : { scopesSupported: scopes }),
    bearerMethodsSupported: ['header'],
  };
  const route = {
    policies: { ...signIn(issuer, { resourceMetadata, ...authentication }), ...policies },
    backends: [{ mcp: { targets: [chaos('one')] } }],
  };
  return protectedGateway([route], { port });
}

/** One request with a bearer token, or with none. */
export function call(
  { url }: Pick<TestGateway, 'url'>,
  token?: string,
  { headers, ...options }: SendOptions = {},
): Promise<HttpReply> {
  const authorization: Record<string, string> =
    token === undefined ? {} : { authorization: `Bearer ${token}` };
  return send(`${url}/mcp`, { headers: { ...authorization, ...headers }, ...options });
}
