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
          error: 'expected a path with `*` directly after a slash, such as `/v1/files/*`',
        })
        .describe('Path of client requests. A trailing `/*` matches everything below. `/v1` may be omitted.'),
      methods: z
        .array(z.enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']))
        .min(1)
        .default(['POST'])
        .describe('Allowed methods.'),
    }),
  )
  .default([])
  .describe(
    "Additional endpoints forwarded to the provider of this model with its key, such as files, batches and stored responses. A call without a model name uses the most specific model that allows its path; the client's key must allow that model. These endpoints read and change data of the whole provider account, not only the client's.",
  );

export type Passthrough = z.output<typeof passthroughSchema>;

/** Whether the list allows a call. */
export function allowsCall(list: Passthrough, method: string, path: string): boolean {
  const requested = withoutVersion(path);
  return list.some(
    ({ path: pattern, methods }) =>
      (methods as readonly string[]).includes(method) && covers(withoutVersion(pattern), requested),
  );
}

function covers(pattern: string, path: string): boolean {
  return pattern.endsWith('/*') ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
}
