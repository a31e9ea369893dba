import { z } from 'zod';

const path = z.string().startsWith('/', { error: 'expected a path that starts with `/`' });

const textMatch = z
  .strictObject({
    exact: z.string().optional().describe('The whole value.'),
    regex: z.string().optional().describe('Regular expression (RE2) that the whole value must match.'),
  })
  .superRefine((value, context) => exactlyOne(value, ['exact', 'regex'], context));

/** Conditions on headers, all of which must hold. */
export const headerMatchesSchema = z
  .array(
    z.strictObject({
      name: z.string().min(1).describe('Header, or `:method`, `:path`, `:authority`, `:scheme`.'),
      value: textMatch.describe('Condition on the value.'),
    }),
  )
  .describe('Conditions on headers.');

/** One entry of `matches[]`; all its conditions must be met. */
export const matchSchema = z
  .strictObject({
    path: z
      .strictObject({
        exact: path.optional().describe('The whole path.'),
        pathPrefix: path
          .optional()
          .describe('Leading segments of the path: `/a` matches `/a` and `/a/b`, not `/ab`.'),
        regex: z.string().optional().describe('Regular expression (RE2) that the whole path must match.'),
      })
      .superRefine((value, context) => exactlyOne(value, ['exact', 'pathPrefix', 'regex'], context))
      .meta({ foreignNames: { prefix: 'pathPrefix' } })
      .prefault({ pathPrefix: '/' })
      .describe('Condition on the path.'),
    headers: headerMatchesSchema.default([]).describe('Conditions on headers.'),
    method: z
      .string()
      .regex(/^[A-Z]+$/, { error: 'expected an HTTP method in capitals, such as `GET`' })
      .optional()
      .describe('HTTP method.'),
    query: z
      .array(
        z.strictObject({
          name: z.string().min(1).describe('Query parameter.'),
          value: textMatch.describe('Condition on the value.'),
        }),
      )
      .default([])
      .describe('Conditions on query parameters, on their decoded values.'),
  })
  .describe('A condition on requests.')
  .meta({
    elsewhere: {
      prefix: 'write `path: { pathPrefix: /… }`',
    },
  });

export type MatchConfig = z.output<typeof matchSchema>;

function exactlyOne(value: object, keys: readonly string[], context: z.core.$RefinementCtx): void {
  const present = keys.filter((key) => (value as Record<string, unknown>)[key] !== undefined);
  if (present.length === 1) return;
  context.addIssue({
    code: 'custom',
    message: `expected exactly one of ${keys.map((key) => `\`${key}\``).join(', ')}`,
    params: { code: 'AGW0105' },
  });
}
