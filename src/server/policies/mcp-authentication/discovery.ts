import { AppError } from '../../../core/errors.ts';
import type { Log } from '../../../core/log.ts';
import { emptyReply } from '../../kernel/error-response.ts';
import type { Reply, RequestContext } from '../../kernel/request-context.ts';
import type { DocumentClient } from '../../transport/document-client.ts';
import { redirectToEntra, relayTokenRequest } from './entra.ts';
import { type Provider, ServerMetadata } from './provider.ts';
import { answerRegistration, jsonReply, type RegistrationLimit, relayRegistration } from './registration.ts';

const RESOURCE = '/.well-known/oauth-protected-resource';
const SERVER = '/.well-known/oauth-authorization-server';
const REGISTRATION = '/client-registration';

export interface DiscoveryOptions {
  readonly issuer: string;
  readonly provider: Provider;
  /** The protected resource, `{base_url}/mcp`; the origin of the request when it is not configured. */
  readonly resource: URL | undefined;
  /** Further members of the resource's metadata, in snake case. */
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Whether clients are directed to the provider instead of the gateway's copy of its metadata. */
  readonly listsIssuer: boolean;
  /** Client id for all registrations; undefined to forward them to the provider. */
  readonly clientId: string | undefined;
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
  const base = (ctx?: RequestContext): string => options.resource?.origin ?? requestOrigin(ctx);
  const suffix = suffixOf(options.resource);
  const endpoints = endpointsOf(options, base, suffix);
  return {
    paths: [...endpoints.keys()],
    answer(ctx) {
      const endpoint = endpoints.get(ctx.path);
      if (endpoint === undefined) return undefined;
      if (ctx.method === 'OPTIONS') return Promise.resolve(emptyReply(204));
      if (ctx.method === endpoint.method) return endpoint.run(ctx);
      throw new AppError('method_not_allowed', { headers: ['allow', `${endpoint.method}, OPTIONS`] });
    },
    share(ctx, { headers }) {
      const endpoint = endpoints.get(ctx.path);
      if (endpoint === undefined) return;
      headers.set('access-control-allow-origin', '*');
      headers.set('access-control-allow-methods', `${endpoint.method}, OPTIONS`);
      headers.set('access-control-allow-headers', 'content-type, mcp-protocol-version');
    },
    metadataUrl: (ctx) => `${base(ctx)}${RESOURCE}${suffix}`,
  };
}

/**
 * The endpoints by path. Clients of different ages put the resource's path behind the well-known segment or do not
 * (RFC 9728 §3.1); both forms are there, and only the longer tells two resources of one host apart.
 */
function endpointsOf(
  options: DiscoveryOptions,
  base: (ctx: RequestContext) => string,
  suffix: string,
): ReadonlyMap<string, Endpoint> {
  const { clientId, client, registrations } = options;
  const server = new ServerMetadata({ ...options, answersRegistration: clientId !== undefined });
  const endpoints = new Map<string, Endpoint>();
  for (const form of new Set(['', suffix])) {
    const registration = `${SERVER}${form}${REGISTRATION}`;
    endpoints.set(RESOURCE + form, {
      method: 'GET',
      run: (ctx) => Promise.resolve(jsonReply(200, resourceMetadata(options, base(ctx)))),
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
          : answerRegistration(ctx, clientId);
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
  return endpoints;
}

/** `/mcp` of `https://host/mcp`; empty for a resource at the root. */
function suffixOf(resource: URL | undefined): string {
  return resource === undefined ? '' : resource.pathname.replace(/\/+$/, '');
}

/** Origin from the request, if no resource is configured. Must be valid in a quoted header parameter. */
function requestOrigin(ctx: RequestContext | undefined): string {
  const host = ctx?.host ?? '';
  const origin = `http://${host}`;
  return /^[\w.:[\]-]+$/.test(host) && URL.canParse(origin) ? origin : 'http://localhost';
}

/** RFC 9728 §2, with two members that the specification requires. */
function resourceMetadata(
  { issuer, resource, metadata, listsIssuer }: DiscoveryOptions,
  base: string,
): object {
  const url = resource === undefined ? base : resource.href.replace(/\/$/, '');
  return {
    resource: url,
    authorization_servers: [listsIssuer ? issuer : url],
    mcp_protocol_version: '2025-06-18',
    resource_type: 'mcp-server',
    ...metadata,
  };
}
