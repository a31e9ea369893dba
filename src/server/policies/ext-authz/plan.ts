import { z } from 'zod';
import { LIMITS } from '../../../core/limits.ts';
import { mapping, nonEmpty } from '../../../core/schema/mapping.ts';
import { toCel } from '../../expressions/cel/values.ts';
import {
  type DocumentedScope,
  NOT_CALLED,
  NOT_ENDED,
  REQUEST_ROOTS,
  requestScope,
} from '../../expressions/scopes.ts';
import { defineVariable } from '../../expressions/variable.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { Expression, ExpressionScope } from '../../kernel/expression.ts';
import { isHeaderName, isSettableHeader, SETTABLE_HEADER } from '../../kernel/request/header-list.ts';
import { warnOfRemovedHeader } from '../../kernel/request/removed-header.ts';
import { Slot } from '../../kernel/slot.ts';
import { createGrpcService, type GrpcService } from '../../transport/services/grpc.ts';
import {
  type ServiceConnection,
  securedAddress,
  servicePoliciesSchema,
} from '../../transport/services/service-policies.ts';
import {
  compileService,
  isOneReference,
  type Service,
  serviceFields,
  serviceMeta,
} from '../../transport/services/service-reference.ts';
import {
  createUpstream,
  parseAddress,
  type Upstream,
  type UpstreamAddress,
} from '../../transport/upstream/upstream.ts';
import { authorizationService } from '../envoy/authorization-service.ts';
import { bodySchema } from './body.ts';
import { cacheSchema, OutcomeCache } from './cache.ts';
import type { Outcome } from './outcome.ts';

/** Values of `metadata` from the response of the authorization service. */
export const extAuthzValues = new Slot<Readonly<Record<string, unknown>>>();

export const extAuthzVariable = defineVariable(
  'extauthz',
  { type: 'map', doc: 'Values of `metadata` of `extAuthz`, by name.' },
  (ctx) => toCel(extAuthzValues.get(ctx) ?? null),
);

/** Scope of expressions on the service's response, which is `response`. */
export const authorizationReplyScope: DocumentedScope = {
  name: 'authorizationReply',
  roots: [...REQUEST_ROOTS, 'response'],
  unavailable: { ...NOT_ENDED, ...NOT_CALLED },
  doc: 'Evaluated after external authorization has answered: `response` is its response.',
  keys: [
    'policies.extAuthz.metadata',
    'policies.extAuthz.protocol.http.metadata',
    'policies.extAuthz.protocol.http.redirect',
  ],
};

const expression = z.string().min(1);
const metadata = z.record(nonEmpty, expression);
const headerName = z.string().refine(isHeaderName, { error: 'expected a header name' });
const copiedHeader = headerName.refine(isSettableHeader, { error: SETTABLE_HEADER });
const addedHeader = z
  .string()
  .refine((name) => name === ':authority' || name === ':method' || isSettableHeader(name), {
    error: `${SETTABLE_HEADER}, or \`:authority\` and \`:method\` for the host and the method of the call`,
  });

export const schema = z
  .strictObject({
    ...serviceFields,
    protocol: z
      .strictObject({
        grpc: mapping("Call the service with Envoy's protocol `envoy.service.auth.v3` (gRPC).", {
          context: z
            .record(nonEmpty, z.string())
            .default({})
            .describe('Fixed values for the service (`context_extensions`).'),
          metadata: metadata
            .optional()
            .describe(
              'Maps for the service (`metadata_context`), as CEL expressions; one that fails is omitted. By default, the claims of the token as `envoy.filters.http.jwt_authn`.',
            ),
        }).optional(),
        http: mapping('Call the service over HTTP.', {
          path: expression
            .optional()
            .describe('CEL expression for the path and query of the call; by default, those of the request.'),
          addRequestHeaders: z
            .record(addedHeader, expression)
            .default({})
            .describe(
              'Headers for the service, as CEL expressions; `:authority` sets the host and `:method` the method. A header whose expression fails is omitted; an `:authority` that is not a host, or a `:method` that is not a method, denies the request.',
            ),
          includeResponseHeaders: z
            .array(copiedHeader)
            .default([])
            .describe("Headers of the service's response that are added to the request to the backend."),
          body: expression
            .optional()
            .describe('CEL expression for the body of the call: text, bytes, or a value that becomes JSON.'),
          redirect: expression
            .optional()
            .describe(
              'CEL expression for a URL to redirect the client to (302) if the service answers 401 or 403.',
            ),
          metadata: metadata.optional().describe('Same as `metadata` next to `host`.'),
        }).optional(),
      })
      .refine(({ grpc, http }) => (grpc === undefined) !== (http === undefined), {
        error: 'expected exactly one of `grpc` and `http`',
      })
      .default({ grpc: { context: {} } })
      .describe('Protocol of the service; gRPC by default.'),
    metadata: metadata
      .optional()
      .describe(
        "Values from the service's response (`response`), as CEL expressions, which other expressions read as `extauthz.<name>`. A value whose expression fails is omitted.",
      ),
    includeRequestHeaders: z
      .array(z.union([headerName, z.enum([':method', ':path', ':authority', ':scheme'])]))
      .optional()
      .describe(
        'Headers of the request that are sent to the service. By default, `authorization` over HTTP and all over gRPC.',
      ),
    includeRequestBody: bodySchema.optional(),
    cache: cacheSchema.optional(),
    policies: servicePoliciesSchema.optional(),
    failureMode: z
      .union([
        z.enum(['deny', 'allow']),
        z.strictObject({ denyWithStatus: z.int().min(400).max(599).describe('Deny with this status.') }),
      ])
      .default('deny')
      .describe('What happens if the service cannot be reached or times out.'),
    denyResponse: z
      .enum(['fixed', 'passthrough'])
      .optional()
      .describe(
        "Response to a denied request: 403 with a fixed text, or the service's response. By default, `fixed` over HTTP and `passthrough` over gRPC.",
      ),
  })
  .check(isOneReference)
  .meta(serviceMeta)
  .describe('Asks an external service whether a request is allowed.');

type Config = z.output<typeof schema>;

interface CommonPlan {
  readonly config: Config;
  /** `host:port` or `unix:path`, for logs. */
  readonly address: string;
  /** Maximum time of a call, in ms. */
  readonly timeout: number;
  readonly cache: OutcomeCache<Outcome> | undefined;
  close(): Promise<void>;
}

type Named = readonly (readonly [name: string, value: Expression])[];

/** The compiled policy for a service over HTTP. */
export interface HttpPlan extends CommonPlan {
  readonly kind: 'http';
  readonly http: NonNullable<Config['protocol']['http']>;
  readonly upstream: Upstream;
  readonly includeRequestHeaders: readonly string[];
  readonly path: Expression | undefined;
  readonly headers: Named;
  readonly body: Expression | undefined;
  readonly redirect: Expression | undefined;
  readonly metadata: Named;
}

/** The compiled policy for a service over gRPC. */
export interface GrpcPlan extends CommonPlan {
  readonly kind: 'grpc';
  readonly grpc: NonNullable<Config['protocol']['grpc']>;
  readonly service: GrpcService;
  /** Undefined: all of them. */
  readonly includeRequestHeaders: readonly string[] | undefined;
  readonly metadata: Named | undefined;
}

export type Plan = HttpPlan | GrpcPlan;

/** Compiles the policy. Reports errors; returns undefined if the service could not be called. */
export function compilePlan(config: Config, context: CompileContext): Plan | undefined {
  const { protocol, includeRequestHeaders = [] } = config;
  // These headers authenticate the client at the service: traces must omit their values.
  for (const [index, name] of includeRequestHeaders.entries()) {
    if (name.startsWith(':') || name.toLowerCase() === 'host') continue;
    context.settings.secretNames.headers.add(name.toLowerCase());
    warnOfRemovedHeader(name, context.at('includeRequestHeaders', index));
  }
  const service = compileService(config, context);
  const common = {
    config,
    timeout: service?.connection.requestTimeout ?? context.settings.limits.authorizationTimeout,
    cache: config.cache && new OutcomeCache<Outcome>(config.cache, context.at('cache'), requestScope),
  };
  const { grpc, http } = protocol;
  if (grpc !== undefined) return compileGrpc(common, grpc, service, context);
  return http && compileHttp(common, http, service, context);
}

/** Whether a value is a path with a query: another one would change the request. */
export const isCallPath = (value: unknown): value is string =>
  typeof value === 'string' && /^\/[\x21-\x7e]*$/.test(value) && !value.includes('#');

type Common = Omit<CommonPlan, 'address' | 'close'>;

function compileGrpc(
  common: Common,
  grpc: GrpcPlan['grpc'],
  found: Service | undefined,
  context: CompileContext,
): GrpcPlan | undefined {
  const { config } = common;
  if (config.metadata !== undefined)
    context.at('metadata').report({
      code: 'AGW0105',
      message: '`metadata` reads a response over HTTP',
      help: 'remove it: over gRPC, the service itself sets the values of `extauthz` (`dynamic_metadata`)',
    });
  const metadata =
    grpc.metadata && compileNamed(grpc.metadata, context.at('protocol', 'grpc', 'metadata'), requestScope);
  const service =
    found &&
    createGrpcService(found, authorizationService, {
      maxBytes: LIMITS.authorizationBody,
      meter: context.settings.callMeter('Policy', 'ExtAuthz'),
    });
  if (service === undefined) return undefined;
  const { includeRequestHeaders } = config;
  const { address } = service;
  return {
    ...common,
    kind: 'grpc',
    grpc,
    service,
    metadata,
    includeRequestHeaders,
    address,
    close: () => service.close(),
  };
}

function compileHttp(
  common: Common,
  http: HttpPlan['http'],
  found: Service | undefined,
  context: CompileContext,
): HttpPlan | undefined {
  const { config } = common;
  if (http.metadata !== undefined && config.metadata !== undefined) {
    context.at('metadata').report({
      code: 'AGW0105',
      message: 'duplicate `metadata`',
      help: 'keep it either here or under `protocol.http`',
    });
  }
  const inHttp = context.at('protocol', 'http');
  const [source, location] =
    config.metadata === undefined
      ? [http.metadata ?? {}, inHttp.at('metadata')]
      : [config.metadata, context.at('metadata')];
  const compileOne = (key: 'path' | 'body' | 'redirect', scope: ExpressionScope): Expression | undefined => {
    const text = http[key];
    return text === undefined ? undefined : inHttp.at(key).cel(text, scope);
  };
  const compiled = {
    ...common,
    kind: 'http',
    http,
    includeRequestHeaders: config.includeRequestHeaders ?? ['authorization'],
    path: compileOne('path', requestScope),
    headers: compileNamed(http.addRequestHeaders, inHttp.at('addRequestHeaders'), requestScope),
    body: compileOne('body', requestScope),
    redirect: compileOne('redirect', authorizationReplyScope),
    metadata: compileNamed(source, location, authorizationReplyScope),
  } as const;
  // Last, so that a wrong address does not hide errors in expressions.
  const address = found && parseAddress(found.host, found.at);
  if (found === undefined || address === undefined) return undefined;
  const { connection } = found;
  const upstream = openService(securedAddress(address, connection), connection, context);
  return { ...compiled, upstream, address: upstream.address, close: () => upstream.close() };
}

export function compileNamed(
  sources: Readonly<Record<string, string>>,
  context: CompileContext,
  scope: ExpressionScope,
): Named {
  return Object.entries(sources).map(([name, source]) => [name, context.at(name).cel(source, scope)]);
}

/** Opens at most `LIMITS.authorizationConnections` connections: otherwise a hanging service would use one per request. */
export function openService(
  address: UpstreamAddress,
  { tls, authorization, connectTimeout }: ServiceConnection,
  context: CompileContext,
): Upstream {
  const max = context.settings.limits.authorizationConnections;
  const upstream = createUpstream(address, {
    connections: max,
    meter: context.settings.callMeter('Policy', 'ExtAuthz'),
    log: context.log,
    ...(tls && { tls }),
    ...(authorization !== undefined && { authorization }),
    ...(connectTimeout !== undefined && { connectTimeout }),
  });
  context.inspection.bounds.push({
    name: 'extAuthz.connections',
    at: context.path.join('.'),
    max,
    used: () => upstream.connected,
  });
  return upstream;
}
