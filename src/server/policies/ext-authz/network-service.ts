import { LIMITS } from '../../../core/limits.ts';
import { tryEvaluate } from '../../expressions/cel/expression.ts';
import { connectionScope } from '../../expressions/scopes.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { VariableResolver } from '../../kernel/expression.ts';
import type { ClientConnection } from '../../kernel/request/client-connection.ts';
import { isHeaderValue } from '../../kernel/request/header-list.ts';
import { createGrpcService } from '../../transport/services/grpc.ts';
import { securedAddress } from '../../transport/services/service-policies.ts';
import { compileService } from '../../transport/services/service-reference.ts';
import { parseAddress } from '../../transport/upstream/upstream.ts';
import { authorizationService, checkAnswerIn } from '../envoy/authorization-service.ts';
import type { Sized } from './cache.ts';
import { peersOf } from './grpc.ts';
import { isDecision } from './http.ts';
import { compileNamed, isCallPath, openService } from './plan.ts';

export interface Decision extends Sized {
  readonly isAllowed: boolean;
  /** For logs. */
  readonly reason: string;
  /** False for an answer that says nothing of further connections. */
  readonly isFinal?: boolean;
}

/** Asks about a connection. Rejects if the service cannot be reached. */
export type AskService = (
  client: ClientConnection,
  lookup: VariableResolver,
  left: AbortSignal,
) => Promise<Decision>;

export interface ConnectionService {
  /** `host:port` or `unix:path`, for logs. */
  readonly address: string;
  readonly ask: AskService;
  close(): Promise<void>;
}

type Config = Parameters<typeof compileService>[0] & {
  readonly protocol: {
    readonly grpc?: { readonly context: Readonly<Record<string, string>> } | undefined;
    readonly http?:
      | { readonly path?: string | undefined; readonly addRequestHeaders: Readonly<Record<string, string>> }
      | undefined;
  };
};

/** The service of `networkExtAuthz`. Reports errors; returns undefined if it could not be called. */
export function connectService(config: Config, context: CompileContext): ConnectionService | undefined {
  const { grpc, http } = config.protocol;
  return grpc === undefined
    ? http && overHttp(config, http, context)
    : overGrpc(config, grpc.context, context);
}

function overGrpc(
  config: Config,
  extensions: Readonly<Record<string, string>>,
  context: CompileContext,
): ConnectionService | undefined {
  const found = compileService(config, context);
  const service =
    found &&
    createGrpcService(found, authorizationService, {
      maxBytes: LIMITS.authorizationBody,
      meter: context.settings.callMeter('Policy', 'ExtAuthz'),
    });
  if (found === undefined || service === undefined) return undefined;
  const timeout = found.connection.requestTimeout ?? context.settings.limits.authorizationTimeout;
  return {
    address: service.address,
    async ask(client, _, signal) {
      const attributes = { ...peersOf(client), context_extensions: extensions };
      const { code } = checkAnswerIn(await service.call('Check', { attributes }, { timeout, signal }));
      return { isAllowed: code === 0, reason: `the service answered with code ${code}` };
    },
    close: () => service.close(),
  };
}

function overHttp(
  config: Config,
  { path, addRequestHeaders }: NonNullable<Config['protocol']['http']>,
  context: CompileContext,
): ConnectionService | undefined {
  const at = context.at('protocol', 'http');
  const pathExpression = path === undefined ? undefined : at.at('path').cel(path, connectionScope);
  const headers = compileNamed(addRequestHeaders, at.at('addRequestHeaders'), connectionScope);
  const found = compileService(config, context);
  const address = found && parseAddress(found.host, found.at);
  if (found === undefined || address === undefined) return undefined;
  const { connection } = found;
  const timeout = connection.requestTimeout ?? context.settings.limits.authorizationTimeout;
  const upstream = openService(securedAddress(address, connection), connection, context);
  return {
    address: upstream.address,
    async ask(_, lookup, left) {
      const target = pathExpression === undefined ? '/' : tryEvaluate(pathExpression, lookup);
      if (!isCallPath(target))
        return {
          isAllowed: false,
          reason: '`protocol.http.path` did not evaluate to a path',
          isFinal: false,
        };
      const added = headers.flatMap(([name, expression]) => {
        const value = tryEvaluate(expression, lookup);
        return typeof value === 'string' && isHeaderValue(value) ? [name, value] : [];
      });
      const signal = AbortSignal.any([AbortSignal.timeout(timeout), left]);
      const { statusCode: status, body } = await upstream.request({
        method: 'GET',
        path: target,
        headers: ['host', upstream.authority, ...added],
        isReplaySafe: true,
        signal,
      });
      // The status decides; the rest is read to use the connection again.
      body.dump({ limit: LIMITS.authorizationBody }).catch(() => undefined);
      if (status > 599) throw new Error(`the service answered with status ${status}`);
      const isAllowed = status >= 200 && status <= 299;
      return { isAllowed, reason: `the service answered ${status}`, isFinal: isDecision(status) };
    },
    close: () => upstream.close(),
  };
}
