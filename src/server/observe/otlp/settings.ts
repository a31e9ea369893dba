import { createRequire } from 'node:module';
import { z } from 'zod';
import { mapping, nonEmpty } from '../../../core/schema/mapping.ts';
import { tryEvaluate } from '../../expressions/cel/expression.ts';
import { resolverFor } from '../../expressions/variable.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { type AddedFields, compileAddedFields } from '../added-fields.ts';
import { logScope, samplingScope } from '../scopes.ts';

const sampling = z.union([z.boolean(), z.number().min(0).max(1), nonEmpty]);
const headers = z
  .record(nonEmpty, z.string().meta({ secret: true }))
  .default({})
  .describe('Headers of each export request. Only for the protocol `http`.');
const protocol = z.enum(['grpc', 'http']);
const PROTOCOL =
  'Protocol of the collector. `grpc` requires the package `@opentelemetry/exporter-trace-otlp-grpc`, installed next to agctl.';
const path = z
  .string()
  .startsWith('/')
  .default('/v1/traces')
  .describe('URL path of the collector. Only for the protocol `http`.');
const randomSampling = sampling
  .default(false)
  .describe(
    'Whether a request without a trace (`traceparent`) starts one: a boolean, a ratio from 0 to 1, or a CEL expression.',
  );
const clientSampling = sampling
  .default(true)
  .describe(
    "Whether a request that continues a client's trace (`traceparent`) is recorded: a boolean, a ratio from 0 to 1, or a CEL expression.",
  );
const cel = z.record(nonEmpty, nonEmpty).default({});
const removed = z.array(nonEmpty).default([]);

/** `config.tracing`. */
export const tracingSchema = z.lazy(() =>
  mapping('Traces exported over OTLP.', {
    otlpEndpoint: z
      .url({ protocol: /^https?$/, error: 'expected a URL such as `http://localhost:4317`' })
      .optional()
      .describe('URL of an OTLP collector. Without it, no traces are exported.'),
    otlpProtocol: protocol.default('grpc').describe(PROTOCOL),
    path,
    headers,
    randomSampling,
    clientSampling,
    fields: z
      .strictObject({
        add: cel.describe('Attributes to add to the span of each request, as CEL expressions.'),
        remove: removed.describe('Attributes to leave out, by their own names or those of the access log.'),
      })
      .prefault({})
      .describe('Attributes.'),
  }),
);

/** `frontendPolicies.tracing`. */
export const frontendTracingSchema = z.lazy(() =>
  mapping('Traces exported over OTLP. Replaces the deprecated `config.tracing`.', {
    host: nonEmpty.describe('Address of an OTLP collector: `host:port`, or a URL.'),
    protocol: protocol.default('grpc').describe(PROTOCOL),
    path,
    randomSampling,
    clientSampling,
    attributes: cel.describe('Attributes to add to the span of each request, as CEL expressions.'),
    resources: z
      .record(nonEmpty, z.string())
      .default({})
      .describe(
        'Resource attributes, as strings. They override `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME`.',
      ),
    remove: removed.describe('Attributes to leave out, by their own names or those of the access log.'),
    filter: nonEmpty.optional().describe('CEL expression: only requests for which it is true are exported.'),
  }),
);

/** A boolean, a ratio from 0 to 1, or an expression that returns one of these (undefined if it fails). */
export type SamplingRule = boolean | number | ((ctx: RequestContext) => unknown);

/** What describes the process in spans and log records. */
export interface ResourceSettings {
  /** OTEL_SERVICE_NAME. `resources` may override it. */
  readonly serviceName: string | undefined;
  /** `RuntimeSettings.instance`. `OTEL_RESOURCE_ATTRIBUTES` and `resources` may override it. */
  readonly instance: string;
  readonly resources: Readonly<Record<string, string>>;
}

/** Compiled `config.tracing` or `frontendPolicies.tracing`. */
export interface TracingSettings extends ResourceSettings {
  readonly url: string;
  readonly protocol: 'grpc' | 'http';
  readonly headers: Readonly<Record<string, string>>;
  readonly removed: ReadonlySet<string>;
  /** Sampling of requests without a `traceparent`. */
  readonly random: SamplingRule;
  /** Sampling of requests with a `traceparent`. */
  readonly client: SamplingRule;
  /** Whether a finished request is exported: the `filter`. Default: true. */
  isExported(ctx: RequestContext): boolean;
  /** Added attributes. */
  readonly added: AddedFields;
}

/** The two sections that configure tracing. */
interface TracingConfig {
  readonly config: { readonly tracing: z.output<typeof tracingSchema> };
  readonly frontendPolicies: { readonly tracing?: z.output<typeof frontendTracingSchema> | undefined };
}

export const resourceSettings = (
  { frontendPolicies }: TracingConfig,
  { env, settings }: Pick<CompileContext, 'env' | 'settings'>,
): ResourceSettings => ({
  // OpenTelemetry's own variable ("Environment Variable Specification", General SDK Configuration).
  serviceName: env['OTEL_SERVICE_NAME'] || undefined,
  instance: settings.instance,
  resources: frontendPolicies.tracing?.resources ?? {},
});

/** Compiles the tracing settings; undefined without a collector. Reports an error if both sections are used. */
export function compileTracing(
  { config, frontendPolicies }: TracingConfig,
  root: CompileContext,
): TracingSettings | undefined {
  const older = config.tracing;
  const newer = frontendPolicies.tracing;
  const resource = resourceSettings({ config, frontendPolicies }, root);
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
    requireGrpc(newer.protocol, 'protocol', at.at('host'));
    const base = /^https?:\/\//.test(newer.host) ? newer.host : `http://${newer.host}`;
    return {
      ...resource,
      url: endpoint(base, newer.protocol, newer.path),
      headers: {},
      ...pick(newer, at),
      added: compileAddedFields(newer.attributes, at.at('attributes')),
      removed: new Set(newer.remove),
      isExported: filterOf(newer.filter, at),
    };
  }
  if (older.otlpEndpoint === undefined) return undefined;
  const at = root.at('config', 'tracing');
  requireGrpc(older.otlpProtocol, 'otlpProtocol', at.at('otlpEndpoint'));
  if (older.otlpProtocol === 'grpc' && Object.keys(older.headers).length > 0) {
    at.at('headers').report({
      code: 'AGW0105',
      message: '`headers` require `otlpProtocol: http`',
      help: 'set `otlpProtocol: http`, or remove `headers`',
      atKey: true,
    });
  }
  return {
    ...resource,
    url: endpoint(older.otlpEndpoint, older.otlpProtocol, older.path),
    headers: older.headers,
    ...pick({ ...older, protocol: older.otlpProtocol }, at),
    added: compileAddedFields(older.fields.add, at.at('fields', 'add')),
    removed: new Set(older.fields.remove),
    isExported: () => true,
  };
}

/** An optional peer dependency, because one of its dependencies has an install script (docs/decisions/0028). */
const GRPC_EXPORTER = '@opentelemetry/exporter-trace-otlp-grpc';
/** The range of `peerDependencies`. */
const GRPC_EXPORTER_VERSION = '0.301';

/** Reports an error if the protocol (`key` or its default) is gRPC and the exporter package is not installed. */
function requireGrpc(protocol: 'grpc' | 'http', key: string, at: CompileContext): void {
  if (protocol !== 'grpc') return;
  try {
    createRequire(import.meta.url).resolve(GRPC_EXPORTER);
  } catch {
    at.report({
      code: 'AGW0402',
      message: `traces over OTLP/gRPC need a package that is not installed: ${GRPC_EXPORTER}`,
      help: `run \`npm install ${GRPC_EXPORTER}@${GRPC_EXPORTER_VERSION}\` where agctl is installed, with \`--global\` if it is installed globally; or set \`${key}: http\` and the port for that, which is 4318 for most collectors`,
    });
  }
}

function endpoint(base: string, protocol: 'grpc' | 'http', path: string): string {
  const url = base.replace(/(?<!\/)\/+$/, '');
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
): Pick<TracingSettings, 'protocol' | 'random' | 'client'> {
  return {
    protocol,
    random: samplingRule(randomSampling, at.at('randomSampling')),
    client: samplingRule(clientSampling, at.at('clientSampling')),
  };
}

function samplingRule(sampling: Sampling, at: CompileContext): SamplingRule {
  if (typeof sampling !== 'string') return sampling;
  const expression = at.cel(sampling, samplingScope);
  return (ctx) => tryEvaluate(expression, resolverFor(ctx));
}

function filterOf(filter: string | undefined, at: CompileContext): (ctx: RequestContext) => boolean {
  if (filter === undefined) return () => true;
  const expression = at.at('filter').condition(filter, logScope);
  return (ctx) => tryEvaluate(expression, resolverFor(ctx)) === true;
}
