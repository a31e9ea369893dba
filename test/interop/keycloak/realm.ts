/** The client that tools are used with, and the audience that the realm issues for it. */
export const CLIENT = 'mcp-client';
export const ROLE = 'tools';
export const PASSWORD = 'a password';

/** Without it tokens are for `account`, if for anybody. */
const AUDIENCE_MAPPER = {
  name: 'audience',
  protocol: 'openid-connect',
  protocolMapper: 'oidc-audience-mapper',
  config: { 'included.client.audience': CLIENT, 'access.token.claim': 'true', 'id.token.claim': 'false' },
};

/** What can be wrong with a realm: each is one row of the specification's table of prerequisites. */
export interface Mistakes {
  readonly sslRequired?: 'ALL' | 'EXTERNAL';
  readonly noAudience?: boolean;
}

/** A realm as the specification's table of prerequisites wants it, but for mistakes. */
export function realmOf(realm: string, { sslRequired, noAudience = false }: Mistakes = {}) {
  return {
    realm,
    enabled: true,
    sslRequired: sslRequired ?? 'NONE',
    accessTokenLifespan: 300,
    roles: { realm: [{ name: ROLE }] },
    clients: [
      {
        clientId: CLIENT,
        publicClient: true,
        directAccessGrantsEnabled: true,
        redirectUris: ['http://127.0.0.1:33418/*'],
        attributes: { 'pkce.code.challenge.method': 'S256' },
        protocolMappers: noAudience ? [] : [AUDIENCE_MAPPER],
      },
    ],
    users: [user('alice', realm, ROLE), user('bob', realm), incomplete('carol')],
  };
}

/** A scope that gives the audience to clients which register themselves: they have no mapper of their own. */
export const AUDIENCE_SCOPE = {
  name: 'mcp-audience',
  protocol: 'openid-connect',
  attributes: { 'include.in.token.scope': 'false', 'display.on.consent.screen': 'false' },
  protocolMappers: [AUDIENCE_MAPPER],
};

function user(username: string, realm: string, ...roles: readonly string[]): object {
  return {
    ...incomplete(username),
    email: `${username}@example.com`,
    emailVerified: true,
    firstName: username,
    lastName: 'Example',
    // The default ones are for the client `account`, which tokens are then for.
    realmRoles: [`default-roles-${realm}`, ...roles],
  };
}

/** The default profile asks for an address and names, which this user lacks. */
function incomplete(username: string): object {
  return {
    username,
    enabled: true,
    credentials: [{ type: 'password', value: PASSWORD, temporary: false }],
  };
}
