import { z } from 'zod';

/** A small configuration with each kind of schema node once, so that the cases do not depend on new settings. */
const secret = z.union([z.string().meta({ secret: true }), z.strictObject({ file: z.string() })]);

const policies = z.strictObject({
  mcpAuthentication: z.strictObject({ issuer: z.url(), clientSecret: secret.optional() }).optional(),
  authorization: z.strictObject({ rules: z.array(z.string()) }).optional(),
  cors: z.strictObject({ allowOrigins: z.array(z.string()).min(1) }).optional(),
  extAuthz: z
    .strictObject({ host: z.string(), headers: z.record(z.string(), z.string()).optional() })
    .optional(),
});

const backend = z.union([
  z.strictObject({ mcp: z.strictObject({ targets: z.array(z.string()) }), weight: z.number().optional() }),
  z.strictObject({ host: z.string(), weight: z.number().optional() }),
  z.strictObject({ ai: z.strictObject({ model: z.string() }), weight: z.number().optional() }),
]);

const guard = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('regex'), pattern: z.string() }),
  z.strictObject({ type: z.literal('webhook'), url: z.url() }),
]);

const route = z
  .strictObject({
    name: z.string(),
    policies: policies.optional(),
    backends: z.array(backend).optional(),
    guards: z.array(guard).optional(),
    timeout: z
      .union([z.literal('never'), z.string().regex(/^\d+(?:ms|s|m)$/, 'not a duration such as `5s`')])
      .optional(),
  })
  .superRefine((value, context) => {
    if (value.timeout !== 'never') return;
    context.addIssue({
      code: 'custom',
      message: 'a route without a time-out can hang',
      path: ['timeout'],
      params: {
        code: 'AGW0303',
        help: 'give a duration',
        label: 'here',
        at: 'key',
        notes: ['the default is 60s'],
      },
    });
  });

export const sampleSchema = z.strictObject({
  logging: z
    .strictObject({ level: z.enum(['debug', 'info', 'warn', 'error']), color: z.boolean() })
    .partial()
    .optional(),
  gateways: z.record(
    z.string().regex(/^[a-z][a-z0-9-]*$/),
    z.strictObject({
      port: z
        .number()
        .int()
        .min(1)
        .max(65_535)
        .meta({ examples: [3000] }),
      protocol: z.literal('HTTP').optional(),
      routes: z.array(z.lazy(() => route)).optional(),
    }),
  ),
  providers: z
    .array(
      z.strictObject({ name: z.string(), apiKey: secret.optional(), model: z.string().min(1).optional() }),
    )
    .optional(),
});
