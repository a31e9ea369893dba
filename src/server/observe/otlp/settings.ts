import type { z } from 'zod';
import { tryEvaluate } from '../../expressions/cel/expression.ts';
import { resolverFor } from '../../expressions/resolver.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { CelResult } from '../../kernel/expression.ts';
import type { RequestContext } from '../../kernel/request-context.ts';
import { logScope, samplingScope } from '../scopes.ts';
import type { frontendTracingSchema, tracingSchema } from './schema.ts';

/** Both forms of tracing in a configuration, compiled. */
export interface TracingSettings {
  readonly url: string;
  /** How the process is called, unless `resources` say otherwise. */
  readonly serviceName: string;
  readonly protocol: 'grpc' | 'http';
  readonly headers: Readonly<Record<string, string>>;
  readonly resources: Readonly<Record<string, string>>;
  readonly removed: ReadonlySet<string>;
  samplesNew(ctx: RequestContext): boolean;
  samplesClient(ctx: RequestContext): boolean;
  /** Whether the ended request is exported. */
  isWanted(ctx: RequestContext): boolean;
  added(ctx: RequestContext): [name: string, value: CelResult][];
}

/** The two places of tracing in a configuration. */
interface TracingConfig {
  readonly config: { readonly tracing: z.output<typeof tracingSchema> };
  readonly frontendPolicies: { readonly tracing?: z.output<typeof frontendTracingSchema> | undefined };
}

/** Undefined without a collector. Both forms at once are reported as an error. */
export function compileTracing(
  { config, frontendPolicies }: TracingConfig,
  root: CompileContext,
): TracingSettings | undefined {
  const older = config.tracing;
  const newer = frontendPolicies.tracing;
  // OpenTelemetry's own variable ("Environment Variable Specification", General SDK Configuration).
  const serviceName = root.env['OTEL_SERVICE_NAME'] || 'agctl';
  if (older.otlpEndpoint !== undefined && newer !== undefined) {
    root.at('config', 'tracing').report({
      code: 'AGW0105',
      message: 'cannot use deprecated config.tracing together with frontendPolicies.tracing',
      help: 'keep one of them',
      atKey: true,
    });
  }
  if (newer !== undefined) {
    const at = root.at('frontendPolicies', 'tracing');
    const base = /^https?:\/\//.test(newer.host) ? newer.host : `http://${newer.host}`;
    return {
      serviceName,
      url: endpoint(base, newer.protocol, newer.path),
      headers: {},
      ...pick(newer, at),
      ...attributes(newer.attributes, at.at('attributes')),
      removed: new Set(newer.remove),
      resources: newer.resources,
      isWanted: filterOf(newer.filter, at),
    };
  }
  if (older.otlpEndpoint === undefined) return undefined;
  const at = root.at('config', 'tracing');
  if (older.otlpProtocol === 'grpc' && Object.keys(older.headers).length > 0) {
    at.at('headers').report({
      code: 'AGW0105',
      message: '`headers` are for collectors over HTTP',
      help: 'set `otlpProtocol: http`',
      atKey: true,
    });
  }
  return {
    serviceName,
    url: endpoint(older.otlpEndpoint, older.otlpProtocol, older.path),
    headers: older.headers,
    ...pick({ ...older, protocol: older.otlpProtocol }, at),
    ...attributes(older.fields.add, at.at('fields', 'add')),
    removed: new Set(older.fields.remove),
    resources: {},
    isWanted: () => true,
  };
}

function endpoint(base: string, protocol: 'grpc' | 'http', path: string): string {
  const url = base.replace(/\/+$/, '');
  return protocol === 'grpc' || new URL(url).pathname !== '/' ? url : url + path;
}

type Sampling = boolean | number | string;

function pick(
  {
    protocol,
    randomSampling,
    clientSampling,
  }: { protocol: 'grpc' | 'http'; randomSampling: Sampling; clientSampling: Sampling },
  at: CompileContext,
): Pick<TracingSettings, 'protocol' | 'samplesNew' | 'samplesClient'> {
  return {
    protocol,
    samplesNew: samplerOf(randomSampling, at.at('randomSampling')),
    samplesClient: samplerOf(clientSampling, at.at('clientSampling')),
  };
}

/** Yes or no, or a probability. An expression that fails samples nothing. */
function samplerOf(sampling: Sampling, at: CompileContext): (ctx: RequestContext) => boolean {
  if (typeof sampling !== 'string') return () => isSampled(sampling);
  const expression = at.cel(sampling, samplingScope);
  return (ctx) => isSampled(tryEvaluate(expression, resolverFor(ctx)));
}

function isSampled(value: unknown): boolean {
  return value === true || (typeof value === 'number' && Math.random() < value);
}

function filterOf(filter: string | undefined, at: CompileContext): (ctx: RequestContext) => boolean {
  if (filter === undefined) return () => true;
  const expression = at.at('filter').condition(filter, logScope);
  return (ctx) => tryEvaluate(expression, resolverFor(ctx)) === true;
}

function attributes(
  sources: Readonly<Record<string, string>>,
  at: CompileContext,
): Pick<TracingSettings, 'added'> {
  const all = Object.entries(sources).map(
    ([name, source]) => [name, at.at(name).cel(source, logScope)] as const,
  );
  return {
    added: (ctx) =>
      all.flatMap(([name, expression]): [string, CelResult][] => {
        const value = tryEvaluate(expression, resolverFor(ctx));
        return value === undefined || value === null ? [] : [[name, value]];
      }),
  };
}
