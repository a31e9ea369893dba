import { z } from 'zod';
import { LIMITS } from '../../../core/limits.ts';
import { mapping, nonEmpty } from '../../../core/schema/mapping.ts';
import { destinationOf, sourceOf } from '../../expressions/connection-variables.ts';
import { connectionScope } from '../../expressions/scopes.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { VariableResolver } from '../../kernel/expression.ts';
import type { ClientConnection } from '../../kernel/request/client-connection.ts';
import { isSettableHeader, SETTABLE_HEADER } from '../../kernel/request/header-list.ts';
import { servicePoliciesSchema } from '../../transport/services/service-policies.ts';
import { isOneReference, serviceFields, serviceMeta } from '../../transport/services/service-reference.ts';
import { explainUpstreamError } from '../../transport/upstream/upstream-error.ts';
import { cacheSchema, OutcomeCache } from './cache.ts';
import { type AskService, connectService, type Decision } from './network-service.ts';

const NO_REQUEST = 'a connection has no request: remove it';
const NO_RESPONSE = 'a connection that is denied is closed, without a response: remove it';
const header = z.string().refine(isSettableHeader, { error: SETTABLE_HEADER });

/** `frontendPolicies.networkExtAuthz`. */
export const networkExtAuthzSchema = z.lazy(() =>
  z
    .strictObject({
      ...serviceFields,
      protocol: z
        .strictObject({
          grpc: mapping(
            "Call the service with Envoy's protocol `envoy.service.auth.v3` (gRPC): it gets `source` and `destination`.",
            {
              context: z
                .record(nonEmpty, z.string())
                .default({})
                .describe('Fixed values for the service (`context_extensions`).'),
            },
          )
            .meta({ elsewhere: { metadata: NO_REQUEST } })
            .optional(),
          http: mapping(
            'Call the service over HTTP, with GET. A status from 200 to 299 allows the connection.',
            {
              path: nonEmpty
                .optional()
                .describe('CEL expression for the path and query of the call; `/` by default.'),
              addRequestHeaders: z
                .record(header, nonEmpty)
                .default({})
                .describe(
                  'Headers for the service, as CEL expressions, such as `source.address`: it gets nothing else of the connection. One that fails is omitted.',
                ),
            },
          )
            .meta({
              elsewhere: {
                includeResponseHeaders: NO_REQUEST,
                metadata: NO_REQUEST,
                body: 'the call has no body: use `path` or `addRequestHeaders`',
                redirect: NO_RESPONSE,
              },
            })
            .optional(),
        })
        .refine(({ grpc, http }) => (grpc === undefined) !== (http === undefined), {
          error: 'expected exactly one of `grpc` and `http`',
        })
        .default({ grpc: { context: {} } })
        .describe('Protocol of the service; gRPC by default.'),
      cache: cacheSchema
        .optional()
        .describe(
          'Uses an outcome for all connections with the same key. Failures of the service are not cached.',
        ),
      policies: servicePoliciesSchema.optional(),
      failureMode: z
        .enum(['deny', 'allow'], {
          error: 'expected `deny` or `allow`: a connection that is closed has no status',
        })
        .default('deny')
        .describe('What happens if the service cannot be reached or takes longer than 2 s.'),
    })
    .check(isOneReference)
    .meta({
      elsewhere: {
        ...serviceMeta.elsewhere,
        includeRequestHeaders: NO_REQUEST,
        includeRequestBody: NO_REQUEST,
        metadata: NO_REQUEST,
        denyResponse: NO_RESPONSE,
      },
    })
    .describe(
      `Asks a service about each connection, after TLS and before anything else is read, and closes those that it does not allow. At most ${LIMITS.authorizingConnections} wait for it; further ones are closed.`,
    ),
);

/** Decides about connections. */
export interface NetworkAuthorizer {
  /** Whether a connection is allowed; `gone` is aborted if its client leaves before. */
  authorize(client: ClientConnection, gone: AbortSignal): Promise<boolean>;
  close(): Promise<void>;
}

export function compileNetworkExtAuthz(
  config: z.output<typeof networkExtAuthzSchema>,
  context: CompileContext,
): NetworkAuthorizer {
  const service = connectService(config, context);
  const cache =
    config.cache && new OutcomeCache<Decision>(config.cache, context.at('cache'), connectionScope);
  const max = context.settings.limits.authorizingConnections;
  const waiting = new Set<Promise<unknown>>();
  context.inspection.bounds.push({
    name: 'networkExtAuthz.waiting',
    at: context.path.join('.'),
    max,
    used: () => waiting.size,
  });
  const decide = async (client: ClientConnection, gone: AbortSignal, ask: AskService): Promise<Decision> => {
    const lookup = lookupOf(client);
    const key = cache?.keyOf(lookup);
    const known = key === undefined ? undefined : cache?.find(key);
    if (known !== undefined) return known;
    if (waiting.size >= max) return { isAllowed: false, reason: `${max} connections wait for the service` };
    const asked = ask(client, lookup, gone);
    waiting.add(asked);
    try {
      const decision = await asked;
      if (key !== undefined && decision.isFinal !== false) cache?.add(key, decision, lookup);
      return decision;
    } catch (error) {
      return {
        isAllowed: config.failureMode === 'allow' && !gone.aborted,
        reason: `the service could not be reached: ${service?.address}: ${problemOf(error)}`,
      };
    } finally {
      waiting.delete(asked);
    }
  };
  return {
    async authorize(client, gone) {
      if (service === undefined) return false;
      const { isAllowed, reason } = await decide(client, gone, service.ask);
      if (!isAllowed)
        context.log.debug('proxy::tcp', 'a connection was refused', { 'src.addr': client.label, reason });
      return isAllowed;
    },
    async close() {
      await Promise.allSettled(waiting);
      await service?.close();
    },
  };
}

const lookupOf =
  (client: ClientConnection): VariableResolver =>
  (root) =>
    root === 'source' ? sourceOf(client) : root === 'destination' ? destinationOf(client) : null;

const problemOf = (error: unknown): string =>
  error instanceof Error && error.name === 'TimeoutError' ? 'timed out' : explainUpstreamError(error);
