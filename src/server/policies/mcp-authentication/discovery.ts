import { AppError } from '../../../core/errors.ts';
import type { Log } from '../../../core/log.ts';
import { emptyReply } from '../../kernel/request/error-response.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import type { DocumentClient } from '../../transport/upstream/document-client.ts';
import { redirectToEntra, relayTokenRequest } from './entra.ts';
import { type Provider, ServerMetadata } from './provider.ts';
import { answerRegistration, jsonReply, type RegistrationLimit, relayRegistration } from './registration.ts';

const RESOURCE = '/.well-known/oauth-protected-resource';
const SERVER = '/.well-known/oauth-authorization-server';
const REGISTRATION = '/client-registration';

export interface DiscoveryOptions {
  readonly issuer: string;
  readonly provider: Provider;
  /** The protected resource as it is written, `{base_url}/mcp`; the origin of the request when it is not configured. */
  readonly resource: string | undefined;
  /** Further members of the resource's metadata, in snake case. */
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Whether clients are directed to the provider instead of the gateway's copy of its metadata. */
  readonly listsIssuer: boolean;
  /** Client id for all registrations; undefined to forward them to the provider. */
  readonly clientId: string | undefined;
  /** Redirect URIs that registrations for `clientId` may have, besides those on loopback hosts. */
  readonly allowedRedirectUris: readonly string[];
  /** Secret of `clientId`, for token requests that the gateway forwards. */
  readonly clientSecret: string | undefined;
  /** What clients request as `audience`, if the provider needs that. */
  readonly audience: string | undefined;
  /** Rate limit of registrations, shared by all paths of the policy. */
  readonly registrations: RegistrationLimit;
  readonly client: DocumentClient;
  readonly log: Log;
}

/** Discovery documents with which MCP clients sign in, and client registration. */
export interface Discovery {
  /** Exact paths of the endpoints. */
  readonly paths: readonly string[];
  /** Answers a request to one of these paths; undefined for other paths. */
  answer(ctx: RequestContext): Promise<Reply> | undefined;
  /** Sets CORS headers on replies on these paths, including errors, so that pages of any origin can read them. */
  share(ctx: RequestContext, reply: Reply): void;
  /** URL of the resource's metadata, for a challenge. `ctx` is used only if no resource is configured. */
  metadataUrl(ctx?: RequestContext): string;
}

interface Endpoint {
  readonly method: 'GET' | 'POST';
  run(ctx: RequestContext): Promise<Reply>;
}

export function createDiscovery(options: DiscoveryOptions): Discovery {
  const resource = options.resource === undefined ? undefined : new URL(options.resource);
  const base = (ctx?: RequestContext): string => resource?.origin ?? requestOrigin(ctx);
  const endpoints = endpointsOf(options, base, resource);
  const suffix = resource === undefined || resource.pathname === '/' ? '' : resource.pathname;
  return {
    paths: [...endpoints.keys()],
    answer(ctx) {
      const endpoint = endpoints.get(ctx.path);
      if (endpoint === undefined) return undefined;
      if (ctx.method === 'OPTIONS') return Promise.resolve(emptyReply(204));
      if (ctx.method === endpoint.method || (ctx.method === 'HEAD' && endpoint.method === 'GET'))
        return endpoint.run(ctx);
      const allow = endpoint.method === 'GET' ? 'GET, HEAD, OPTIONS' : 'POST, OPTIONS';
      throw new AppError('method_not_allowed', { headers: ['allow', allow] });
    },
    share(ctx, { headers }) {
      const endpoint = endpoints.get(ctx.path);
      if (endpoint === undefined) return;
      headers.set('access-control-allow-origin', '*');
      headers.set('access-control-allow-methods', `${endpoint.method}, OPTIONS`);
      headers.set('access-control-allow-headers', 'content-type, mcp-protocol-version');
    },
    // RFC 9728 §3.1: path and query of the resource follow the well-known segment.
    metadataUrl: (ctx) => `${base(ctx)}${RESOURCE}${suffix}${resource?.search ?? ''}`,
  };
}

/**
 * The endpoints by path. Clients of different ages put the resource's path behind the well-known segment or do not
 * (RFC 9728 §3.1); both forms are there, and only the longer tells two resources of one host apart.
 */
function endpointsOf(
  options: DiscoveryOptions,
  base: (ctx: RequestContext) => string,
  resource: URL | undefined,
): ReadonlyMap<string, Endpoint> {
  const { clientId, client, registrations } = options;
  const suffix = suffixOf(resource);
  const server = new ServerMetadata({ ...options, answersRegistration: clientId !== undefined });
  const endpoints = new Map<string, Endpoint>();
  for (const form of new Set(['', suffix])) {
    const registration = `${SERVER}${form}${REGISTRATION}`;
    endpoints.set(RESOURCE + form, {
      method: 'GET',
      run: (ctx) => Promise.resolve(jsonReply(200, resourceMetadata(options, base(ctx) + suffix))),
    });
    endpoints.set(SERVER + form, {
      method: 'GET',
      run: async (ctx) => jsonReply(200, await server.read(base(ctx) + form, base(ctx) + registration)),
    });
    endpoints.set(registration, {
      method: 'POST',
      run: async (ctx) => {
        registrations.take(ctx);
        return clientId === undefined
          ? relayRegistration(ctx, client, server)
          : answerRegistration(ctx, clientId, options.allowedRedirectUris);
      },
    });
    if (options.provider.rejectsResource !== true) continue;
    endpoints.set(`${SERVER}${form}/authorize`, {
      method: 'GET',
      run: (ctx) => Promise.resolve(redirectToEntra(ctx, options.issuer)),
    });
    endpoints.set(`${SERVER}${form}/token`, {
      method: 'POST',
      run: (ctx) => relayTokenRequest(ctx, client, options),
    });
  }
  // Clients either remove the slash at the end of a resource before they look for metadata (RFC 8414 §3.1), or do not.
  if (resource?.pathname.endsWith('/') === true)
    for (const path of [RESOURCE, SERVER])
      for (const end of new Set(['/', `${suffix}/`, resource.pathname])) {
        const endpoint = endpoints.get(path + (end === '/' ? '' : suffix));
        if (endpoint !== undefined) endpoints.set(path + end, endpoint);
      }
  return endpoints;
}

/** `/mcp` of `https://host/mcp`; empty for a resource at the root. */
function suffixOf(resource: URL | undefined): string {
  return resource === undefined ? '' : resource.pathname.replace(/(?<!\/)\/+$/, '');
}

/**
 * Origin from the request, if no resource is configured. Must be valid in a quoted header parameter: a second lock, because
 * `canonicalAuthority` accepts no quotes.
 */
function requestOrigin(ctx: RequestContext | undefined): string {
  const host = ctx?.host ?? '';
  const origin = `http://${host}`;
  return /^[\w.:[\]-]+$/.test(host) && URL.canParse(origin) ? origin : 'http://localhost';
}

/** RFC 9728 §2, with two members that the specification requires. `server` is the gateway as authorization server. */
function resourceMetadata(
  { issuer, resource, metadata, listsIssuer }: DiscoveryOptions,
  server: string,
): object {
  return {
    // As it is written: clients compare it with the URL that they were given, character by character (RFC 9728 §3.3).
    resource: resource ?? server,
    authorization_servers: [listsIssuer ? issuer : server],
    mcp_protocol_version: '2025-06-18',
    resource_type: 'mcp-server',
    ...metadata,
  };
}
