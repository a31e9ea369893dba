import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Members, type SigningKey, seconds, signingKey, token } from './tokens.ts';
import { type HttpUpstream, httpUpstream, type Received } from './upstream.ts';

/** What a scripted identity provider can be asked. */
export type IdpEndpoint = 'certs' | 'openid-configuration' | 'rfc8414' | 'registration';

export type IdpAnswer = (request: IncomingMessage, response: ServerResponse, received: Received) => unknown;

/** An identity provider that says what a test wants it to say, under the paths of the specification. */
export interface Idp extends AsyncDisposable {
  readonly issuer: string;
  readonly origin: string;
  readonly upstream: HttpUpstream;
  /** The key that `token` signs with; published at first. */
  readonly key: SigningKey;
  /** What the key set holds; replace it to rotate. */
  published: readonly object[];
  /** Members that the metadata has besides, or instead; undefined ones are left out. */
  metadata: Members;
  /** Answers instead of the usual ones. */
  readonly answers: Map<IdpEndpoint, IdpAnswer>;
  /** How often it was asked, per endpoint. */
  hits(endpoint: IdpEndpoint): number;
  /** Requests for one endpoint. */
  asked(endpoint: IdpEndpoint): readonly Received[];
  /** Claims of a token that is all right. */
  claims(more?: Members): Members;
  /** A valid token, with other claims or header members where given. */
  token(more?: Members, header?: Members): string;
}

/** The audience that the realm issues. */
export const AUDIENCE = 'mcp-client';

export async function startIdp({ realm = 'main', alg = 'ES256' } = {}): Promise<Idp> {
  const key = signingKey(`${realm}-1`, alg);
  const upstream = await httpUpstream((request, response, received) => {
    const endpoint = endpointOf(received.target, realm);
    if (endpoint === undefined) return response.writeHead(404).end();
    const answer = idp.answers.get(endpoint) ?? USUAL[endpoint];
    return answer.call(idp, request, response, received);
  });
  const origin = `http://${upstream.address}`;
  const issuer = `${origin}/realms/${realm}`;
  const asked = (endpoint: IdpEndpoint): Received[] =>
    upstream.received.filter(({ target }) => endpointOf(target, realm) === endpoint);
  const claims = (more: Members = {}): Members => ({
    iss: issuer,
    aud: AUDIENCE,
    sub: 'alice',
    typ: 'Bearer',
    iat: seconds(),
    exp: seconds(300),
    ...more,
  });
  const idp: Idp = {
    issuer,
    origin,
    upstream,
    key,
    published: [key.jwk],
    metadata: {},
    answers: new Map(),
    asked,
    hits: (endpoint) => asked(endpoint).length,
    claims,
    token: (more, header) => token(key, claims(more), header),
    [Symbol.asyncDispose]: () => upstream.close(),
  };
  return idp;
}

function endpointOf(target: string, realm: string): IdpEndpoint | undefined {
  switch (target) {
    case `/realms/${realm}/protocol/openid-connect/certs`:
      return 'certs';
    case `/realms/${realm}/.well-known/openid-configuration`:
      return 'openid-configuration';
    case `/.well-known/oauth-authorization-server/realms/${realm}`:
      return 'rfc8414';
    case `/realms/${realm}/clients-registrations/openid-connect`:
      return 'registration';
    default:
      return undefined;
  }
}

type Usual = (this: Idp, request: IncomingMessage, response: ServerResponse, received: Received) => unknown;

const USUAL: Readonly<Record<IdpEndpoint, Usual>> = {
  certs(_, response) {
    json(response, 200, { keys: this.published });
  },
  'openid-configuration'(_, response) {
    json(response, 200, metadataOf(this));
  },
  rfc8414(_, response) {
    json(response, 200, metadataOf(this));
  },
  registration(_, response, { body }) {
    json(response, 201, { ...(JSON.parse(body) as object), client_id: 'generated-1' });
  },
};

function metadataOf({ issuer, metadata }: Idp): object {
  const base = `${issuer}/protocol/openid-connect`;
  return {
    issuer,
    authorization_endpoint: `${base}/auth`,
    token_endpoint: `${base}/token`,
    jwks_uri: `${base}/certs`,
    registration_endpoint: `${issuer}/clients-registrations/openid-connect`,
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
    ...metadata,
  };
}

export function json(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}
