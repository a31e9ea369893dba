import { z } from 'zod';

const sampling = z.union([z.boolean(), z.number().min(0).max(1), z.string().min(1)]);
const headers = z
  .record(z.string().min(1), z.string().meta({ secret: true }))
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
const cel = z.record(z.string().min(1), z.string().min(1)).default({});
const removed = z.array(z.string().min(1)).default([]);

/** `config.tracing`. */
export const tracingSchema = z
  .strictObject({
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
  })
  .describe('Traces exported over OTLP.');

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
        'Resource attributes, as strings. They override `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME`.',
      ),
    remove: removed.describe('Attributes to leave out, by their own names or those of the access log.'),
    filter: z
      .string()
      .min(1)
      .optional()
      .describe('CEL expression: only requests for which it is true are exported.'),
  })
  .describe('Traces exported over OTLP. Replaces the deprecated `config.tracing`.');
