import type { Config } from '../../config/schema.ts';
import { type CelResult, tryEvaluate } from '../../expressions/cel/expression.ts';
import { lookupIn } from '../../expressions/variables.ts';
import type { Exchange } from '../../kernel/request-context.ts';
import type { CompileContext } from '../../runtime/compile-context.ts';

/** Both forms of tracing in a configuration, compiled. */
export interface TracingSettings {
  readonly url: string;
  /** How the process is called, unless `resources` say otherwise. */
  readonly serviceName: string;
  readonly protocol: 'grpc' | 'http';
  readonly headers: Readonly<Record<string, string>>;
  readonly resources: Readonly<Record<string, string>>;
  readonly removed: ReadonlySet<string>;
  samplesNew(x: Exchange): boolean;
  samplesClient(x: Exchange): boolean;
  /** Whether the ended request is exported. */
  isWanted(x: Exchange): boolean;
  added(x: Exchange): [name: string, value: CelResult][];
}

/** Undefined without a collector. Both forms at once are reported as an error. */
export function compileTracing(
  { config, frontendPolicies }: Config,
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
function samplerOf(sampling: Sampling, at: CompileContext): (x: Exchange) => boolean {
  if (typeof sampling !== 'string') return () => isSampled(sampling);
  const expression = at.cel(sampling, 'sampling');
  return (x) => isSampled(tryEvaluate(expression, lookupIn(x)));
}

function isSampled(value: unknown): boolean {
  return value === true || (typeof value === 'number' && Math.random() < value);
}

function filterOf(filter: string | undefined, at: CompileContext): (x: Exchange) => boolean {
  if (filter === undefined) return () => true;
  const expression = at.at('filter').condition(filter, 'log');
  return (x) => tryEvaluate(expression, lookupIn(x)) === true;
}

function attributes(
  sources: Readonly<Record<string, string>>,
  at: CompileContext,
): Pick<TracingSettings, 'added'> {
  const all = Object.entries(sources).map(
    ([name, source]) => [name, at.at(name).cel(source, 'log')] as const,
  );
  return {
    added: (x) =>
      all.flatMap(([name, expression]): [string, CelResult][] => {
        const value = tryEvaluate(expression, lookupIn(x));
        return value === undefined || value === null ? [] : [[name, value]];
      }),
  };
}
