import { z } from 'zod';

const sampling = z.union([z.boolean(), z.number().min(0).max(1), z.string().min(1)]);
const headers = z
  .record(z.string().min(1), z.string().meta({ secret: true }))
  .default({})
  .describe('Headers of each export; with `http` only.');
const protocol = z.enum(['grpc', 'http']);
const PROTOCOL =
  'Protocol of the collector. `grpc` needs the package `@opentelemetry/exporter-trace-otlp-grpc` beside agctl.';
const path = z.string().startsWith('/').default('/v1/traces').describe('Path of the collector, with `http`.');
const randomSampling = sampling
  .default(false)
  .describe(
    'Whether a request that belongs to no trace begins one: yes or no, a share from 0 to 1, or a CEL expression.',
  );
const clientSampling = sampling
  .default(true)
  .describe(
    'Whether a request that belongs to a trace of its client (`traceparent`) is recorded in it; in the same forms.',
  );
const cel = z.record(z.string().min(1), z.string().min(1)).default({});
const removed = z.array(z.string().min(1)).default([]);

/** `config.tracing`. */
export const tracingSchema = z
  .strictObject({
    otlpEndpoint: z
      .url({ protocol: /^https?$/, error: 'expected a URL such as `http://localhost:4317`' })
      .optional()
      .describe('URL of an OTLP collector. Without it there are no traces.'),
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
  })
  .describe('Traces, exported over OTLP.');

/** `frontendPolicies.tracing`. */
export const frontendTracingSchema = z
  .strictObject({
    host: z.string().min(1).describe('Address of an OTLP collector: `host:port`, or a URL.'),
    protocol: protocol.default('grpc').describe(PROTOCOL),
    path,
    randomSampling,
    clientSampling,
    attributes: cel.describe('Attributes to add to the span of each request, as CEL expressions.'),
    resources: z
      .record(z.string().min(1), z.string())
      .default({})
      .describe(
        'Attributes of the process, as texts; they override `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME`.',
      ),
    remove: removed.describe('Attributes to leave out, by their own names or those of the access log.'),
    filter: z
      .string()
      .min(1)
      .optional()
      .describe('CEL expression: only requests for which it is true are exported.'),
  })
  .describe('Traces, exported over OTLP; the newer form of `config.tracing`.');
