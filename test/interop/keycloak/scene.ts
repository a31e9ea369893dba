import type { TestGateway } from '../../kit/gateway.ts';
import { INITIALIZE, type McpReply, post } from '../../kit/mcp.ts';
import { specifiedGateway } from '../../kit/sign-in.ts';
import { KeycloakAdmin } from './admin.ts';
import { CLIENT, type Mistakes, PASSWORD, ROLE, realmOf } from './realm.ts';

// `npm run test:interop` starts a Keycloak and says where it is; without one there is nothing to test against.
const { KEYCLOAK_URL: url = '', KEYCLOAK_ADMIN_PASSWORD: password = '' } = process.env;
export const hasKeycloak = url !== '';
export const admin = new KeycloakAdmin(url, password);

/** The policy on who may register, set as the specification's table wants it. */
export const TRUSTED = {
  'trusted-hosts': ['127.0.0.1', 'localhost'],
  'host-sending-registration-request-must-match': ['false'],
  'client-uris-must-match': ['true'],
};

/** Makes a realm, right or wrong, and returns its issuer. */
export async function makeRealm(name: string, mistakes: Mistakes = {}): Promise<string> {
  await admin.createRealm(realmOf(name, mistakes));
  return `${url}/realms/${name}`;
}

/**
 * The specification's gateway, which only holders of the role may use. No scopes are advertised: clients ask for what
 * is, at registration too, and Keycloak then gives them nothing else.
 */
export function openGateway(issuer: string, more: object = {}): Promise<TestGateway> {
  const authorization = { rules: [`"${ROLE}" in jwt.realm_access.roles`] };
  return specifiedGateway(issuer, {
    authentication: { audiences: [CLIENT], ...more },
    policies: { authorization },
  });
}

/** What the token endpoint answers. */
export interface Grant {
  readonly status: number;
  readonly access_token: string;
  readonly refresh_token: string;
  readonly id_token: string;
  readonly error?: string;
  readonly error_description?: string;
}

/** Asks for tokens with a password, as one does for a test. */
export async function grant(issuer: string, username: string): Promise<Grant> {
  const response = await fetch(`${issuer}/protocol/openid-connect/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'password',
      client_id: CLIENT,
      username,
      password: PASSWORD,
      scope: 'openid',
    }),
  });
  return { status: response.status, ...((await response.json()) as Omit<Grant, 'status'>) };
}

export function initialize(gateway: TestGateway, bearer?: string): Promise<McpReply> {
  const headers: Record<string, string> = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
  return post(`${gateway.url}/mcp`, INITIALIZE, headers);
}

/** What a refusal says is wrong with the token. */
export function told({ text }: McpReply): string {
  return JSON.parse(text).error_description;
}
