import { AppError, messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import type { Exchange, Reply } from '../../http/exchange.ts';
import { HeaderList } from '../../http/header-list.ts';
import type { DocumentClient } from './document.ts';
import type { Provider } from './provider.ts';

const RESOURCE = '/.well-known/oauth-protected-resource';
const SERVER = '/.well-known/oauth-authorization-server';
const REGISTRATION = '/client-registration';

export interface DiscoveryOptions {
  readonly issuer: string;
  readonly provider: Provider;
  /** The protected resource, `{base_url}/mcp`; from the request when it is not configured. */
  readonly resource: URL | undefined;
  /** Further members of the resource's metadata, already in snake case. */
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Clients are sent to the provider itself instead of the gateway's copy of its metadata. */
  readonly listsIssuer: boolean;
  /** Every registration is answered with this client. */
  readonly clientId: string | undefined;
  readonly client: DocumentClient;
  readonly log: Log;
}

/** The documents by which MCP clients find out how to sign in, and the registration of clients. */
export interface Discovery {
  /** Exact paths that are answered here. */
  readonly paths: readonly string[];
  /** The answer to a request on one of those paths; undefined on any other. */
  answer(x: Exchange): Promise<Reply> | undefined;
  /** URL of the resource's metadata, for a challenge. */
  metadataUrl(x: Exchange): string;
}

export function createDiscovery(options: DiscoveryOptions): Discovery {
  const suffix = suffixOf(options.resource);
  const forms = suffix === '' ? [''] : ['', suffix];
  const server = new ServerMetadata(options);
  const base = (x: Exchange): string => options.resource?.origin ?? requestOrigin(x);
  const routes = new Map<string, { method: 'GET' | 'POST'; run: (x: Exchange) => Promise<Reply> }>();
  for (const form of forms) {
    routes.set(RESOURCE + form, {
      method: 'GET',
      run: (x) => Promise.resolve(jsonReply(200, resourceMetadata(options, base(x)))),
    });
    routes.set(SERVER + form, {
      method: 'GET',
      run: async (x) => jsonReply(200, await server.read(base(x), form)),
    });
    routes.set(SERVER + form + REGISTRATION, { method: 'POST', run: (x) => register(x, options, server) });
  }
  return {
    paths: [...routes.keys()],
    answer(x) {
      const route = routes.get(x.path);
      if (route === undefined) return undefined;
      const methods = `${route.method}, OPTIONS`;
      if (x.method === 'OPTIONS')
        return Promise.resolve({
          status: 204,
          headers: new HeaderList(crossOrigin(methods)),
          body: undefined,
        });
      if (x.method !== route.method)
        throw new AppError('method_not_allowed', { headers: ['allow', methods, ...crossOrigin(methods)] });
      return route.run(x).then((reply) => {
        reply.headers.raw.push(...crossOrigin(methods));
        return reply;
      });
    },
    metadataUrl: (x) =>
      `${base(x)}${RESOURCE}${suffixOf(options.resource ?? new URL(`${requestOrigin(x)}${x.path}`))}`,
  };
}

/** `/mcp` of `https://host/mcp`; empty for a resource at the root. */
function suffixOf(resource: URL | undefined): string {
  return resource === undefined ? '' : resource.pathname.replace(/\/+$/, '');
}

/** Without a configured resource the request is all there is to go by. */
function requestOrigin(x: Exchange): string {
  return `http://${x.host}`;
}

/** Metadata is public, and browser clients of any origin need it. */
function crossOrigin(methods: string): string[] {
  return [
    'access-control-allow-origin',
    '*',
    'access-control-allow-methods',
    methods,
    'access-control-allow-headers',
    'content-type, mcp-protocol-version',
  ];
}

function jsonReply(status: number, value: unknown): Reply {
  return {
    status,
    headers: new HeaderList(['content-type', 'application/json']),
    body: JSON.stringify(value),
  };
}

/** RFC 9728 §2, with two members that MCP clients of the specification's time read. */
function resourceMetadata(
  { issuer, provider, resource, metadata, listsIssuer }: DiscoveryOptions,
  base: string,
): object {
  const url = resource === undefined ? base : resource.href.replace(/\/$/, '');
  return {
    resource: url,
    authorization_servers: [provider.isFronted && !listsIssuer ? url : issuer],
    mcp_protocol_version: '2025-06-18',
    resource_type: 'mcp-server',
    ...metadata,
  };
}

type Metadata = Readonly<Record<string, unknown>>;

/** The provider's metadata, cached; a provider that does not answer serves what it said before. */
class ServerMetadata {
  readonly #options: DiscoveryOptions;
  #document: Metadata | undefined;
  #expiresAt = 0;
  #reading: Promise<Metadata> | undefined;

  constructor(options: DiscoveryOptions) {
    this.#options = options;
  }

  /** As clients of the gateway see it. `form` is the part of the path after the well-known segment. */
  async read(base: string, form: string): Promise<Metadata> {
    const document = await this.original();
    const { provider, clientId } = this.#options;
    const registers = clientId !== undefined || registrationUrl(document, this.#options) !== undefined;
    const own = registers ? { registration_endpoint: `${base}${SERVER}${REGISTRATION}` } : {};
    if (!provider.isFronted) return { ...document, ...own };
    // RFC 9207: the provider's `iss` in a callback would not be the issuer that we name here.
    const { authorization_response_iss_parameter_supported: _dropped, ...kept } = document;
    return { ...kept, issuer: `${base}${form}`, ...own };
  }

  original(): Promise<Metadata> {
    if (this.#document !== undefined && performance.now() < this.#expiresAt)
      return Promise.resolve(this.#document);
    this.#reading ??= this.#fetch().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #fetch(): Promise<Metadata> {
    const { provider, issuer, client, log } = this.#options;
    try {
      const { value } = await client.fetch(provider.metadataUrl(issuer), LIMITS.metadataBytes);
      this.#document = checkedMetadata(value, issuer);
      this.#expiresAt = performance.now() + LIMITS.serverMetadataLifetime;
      return this.#document;
    } catch (error) {
      const problem = messageOf(error);
      log.warn('auth', 'metadata of the identity provider could not be read', { problem });
      if (this.#document !== undefined) return this.#document;
      throw new AppError('provider_failed', { detail: problem, headers: crossOrigin('GET, OPTIONS') });
    }
  }
}

/** Refuses metadata of another issuer, and leaves out endpoints that are not http(s): clients open them. */
function checkedMetadata(value: unknown, issuer: string): Metadata {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error('its metadata is not a JSON object');
  const document = value as Record<string, unknown>;
  if (document['issuer'] !== issuer)
    throw new Error(
      `its metadata names the issuer ${String(document['issuer']).slice(0, 200)}, expected ${issuer}`,
    );
  return Object.fromEntries(
    Object.entries(document).filter(([key, member]) => !/_(?:endpoint|uri)$/.test(key) || isHttpUrl(member)),
  );
}

function isHttpUrl(value: unknown): boolean {
  return typeof value === 'string' && /^https?:\/\//.test(value) && URL.canParse(value);
}

function registrationUrl(document: Metadata, { issuer, provider }: DiscoveryOptions): string | undefined {
  const { registration_endpoint: endpoint } = document;
  // Only at the provider itself: its metadata must not send our requests elsewhere.
  if (typeof endpoint === 'string' && new URL(endpoint).origin === new URL(issuer).origin) return endpoint;
  return provider.registrationUrl(issuer);
}

/** Dynamic client registration (RFC 7591): handed to the provider as it is, and its answer handed back. */
async function register(x: Exchange, options: DiscoveryOptions, server: ServerMetadata): Promise<Reply> {
  const body = await x.body.read(LIMITS.registrationBytes);
  if (options.clientId !== undefined) return fixedClient(body, options.clientId);
  const url = registrationUrl(await server.original().catch(() => ({})), options);
  if (url === undefined)
    throw new AppError('provider_failed', { detail: 'the identity provider has no registration endpoint' });
  const { pathname, search } = new URL(url);
  const request = {
    method: 'POST',
    path: pathname + search,
    headers: ['content-type', 'application/json', 'accept', 'application/json'],
    body,
  };
  const answer = await options.client.send(url, request, LIMITS.registrationBytes).catch((error: unknown) => {
    throw new AppError('provider_failed', { detail: messageOf(error) });
  });
  const type = answer.headers['content-type'];
  return {
    status: answer.status,
    headers: new HeaderList(typeof type === 'string' ? ['content-type', type] : []),
    body: answer.body,
  };
}

/**
 * One client for everybody: what it may do must not depend on who asks, so redirects go to the asker's own machine
 * only. Otherwise a stranger could have codes of users, who trust this client, sent to himself.
 */
function fixedClient(body: Buffer, clientId: string): Reply {
  const requested = parseRegistration(body);
  const uris = Array.isArray(requested['redirect_uris']) ? (requested['redirect_uris'] as unknown[]) : [];
  if (!uris.every(isLoopbackUrl))
    return jsonReply(400, {
      error: 'invalid_redirect_uri',
      error_description: 'redirect URIs must be on localhost, 127.0.0.1 or [::1]',
    });
  return jsonReply(201, {
    client_id: clientId,
    client_id_issued_at: 0,
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    redirect_uris: uris,
  });
}

function parseRegistration(body: Buffer): Record<string, unknown> {
  try {
    const value = JSON.parse(body.toString('utf8')) as unknown;
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch {
    // Answered below.
  }
  throw new AppError('bad_request', { message: 'the registration is not a JSON object' });
}

function isLoopbackUrl(value: unknown): boolean {
  if (typeof value !== 'string' || !URL.canParse(value)) return false;
  const { protocol, hostname } = new URL(value);
  return (
    (protocol === 'http:' || protocol === 'https:') &&
    /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)
  );
}
