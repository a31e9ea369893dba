import { z } from 'zod';
import { withoutVersion } from './endpoints.ts';

export const passthroughSchema = z
  .array(
    z.strictObject({
      path: z
        .string()
        .regex(/^\/[A-Za-z0-9._~!$&'()+,;=:@/-]*\*?$/, {
          error: 'expected a path such as `/v1/files` or `/v1/files/*`',
        })
        .refine((path) => !path.endsWith('*') || path.endsWith('/*'), {
          error: 'expected a path whose `*` stands after a slash, such as `/v1/files/*`',
        })
        .describe(
          'Path as clients ask for it; with `/*` at its end everything below it. `/v1` may be left out.',
        ),
      methods: z
        .array(z.enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']))
        .min(1)
        .default(['POST'])
        .describe('Methods that are let through.'),
    }),
  )
  .default([])
  .describe(
    "Further calls that are handed to the provider of this model, with its key: files, batches, stored responses. A call that names no model goes to the most specific model that opens its path, and needs a client key that may use it. What a call changes or reads at the provider is the whole account's, not the client's.",
  );

export type Passthrough = z.output<typeof passthroughSchema>;

/** Whether a list opens a call. */
export function opens(list: Passthrough, method: string, path: string): boolean {
  const asked = withoutVersion(path);
  return list.some(
    ({ path: pattern, methods }) =>
      (methods as readonly string[]).includes(method) && covers(withoutVersion(pattern), asked),
  );
}

function covers(pattern: string, path: string): boolean {
  return pattern.endsWith('/*') ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
}
