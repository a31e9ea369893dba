import { requestScope } from '../../expressions/scopes.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { Expression } from '../../kernel/expression.ts';
import { warnOfRemovedHeader } from '../../kernel/removed-header.ts';
import {
  createUpstream,
  parseAddress,
  type Upstream,
  type UpstreamAddress,
} from '../../transport/upstream.ts';
import type { Config } from './schema.ts';
import { authorizationReplyScope } from './scope.ts';

/** The compiled policy. */
export interface Plan {
  readonly upstream: Upstream;
  readonly config: Config;
  readonly path: Expression | undefined;
  readonly headers: readonly (readonly [name: string, value: Expression])[];
  readonly redirect: Expression | undefined;
  readonly metadata: readonly (readonly [name: string, value: Expression])[];
}

/** Compiles the policy. Reports errors; returns undefined if the service could not be called. */
export function compilePlan(config: Config, context: CompileContext): Plan | undefined {
  const http = config.protocol?.http;
  if (http === undefined) {
    context.report({
      code: 'AGW0103',
      message: '`protocol.http` is missing',
      label: 'expected how to call the service',
      help: 'add `protocol: { http: {} }`',
      notes: ['upstream defaults to gRPC here, which this gateway does not support'],
    });
  }
  if (http?.metadata !== undefined && config.metadata !== undefined) {
    context.at('metadata').report({
      code: 'AGW0105',
      message: 'duplicate `metadata`',
      help: 'keep it either here or under `protocol.http`',
    });
  }
  // These headers authenticate the client at the service: traces must omit their values.
  for (const [index, name] of config.includeRequestHeaders.entries()) {
    if (name.toLowerCase() !== 'host') context.settings.secretNames.headers.add(name.toLowerCase());
    warnOfRemovedHeader(name, context.at('includeRequestHeaders', index));
  }
  const address = parseAddress(config.host, context.at('host'));
  if (http === undefined) return undefined;
  const inHttp = context.at('protocol', 'http');
  const [source, location] =
    config.metadata === undefined
      ? [http.metadata ?? {}, inHttp.at('metadata')]
      : [config.metadata, context.at('metadata')];
  const compiled: Omit<Plan, 'upstream'> = {
    config,
    path: http.path === undefined ? undefined : inHttp.at('path').cel(http.path, requestScope),
    headers: Object.entries(http.addRequestHeaders).map(([name, value]) => [
      name,
      inHttp.at('addRequestHeaders', name).cel(value, requestScope),
    ]),
    redirect:
      http.redirect === undefined
        ? undefined
        : inHttp.at('redirect').cel(http.redirect, authorizationReplyScope),
    metadata: Object.entries(source).map(([name, value]) => [
      name,
      location.at(name).cel(value, authorizationReplyScope),
    ]),
  };
  // Last, so that a wrong address does not hide errors in expressions.
  return address === undefined ? undefined : { ...compiled, upstream: openService(address, context) };
}

/** Opens at most `LIMITS.authorizationConnections` connections: otherwise a hanging service would use one per request. */
function openService(address: UpstreamAddress, context: CompileContext): Upstream {
  const max = context.settings.limits.authorizationConnections;
  const upstream = createUpstream(address, {
    connections: max,
    meter: context.settings.callMeter('Policy', 'ExtAuthz'),
    log: context.log,
  });
  context.inspection.bounds.push({
    name: 'extAuthz.connections',
    at: context.path.join('.'),
    max,
    used: () => upstream.connected,
  });
  return upstream;
}
