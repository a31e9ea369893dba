import { z } from 'zod';
import { isHeaderName, isSettableHeader, SETTABLE_HEADER } from '../../kernel/header-list.ts';

const expression = z.string().min(1);
const metadata = z.record(z.string().min(1), expression);
const headerName = z.string().refine(isHeaderName, { error: 'expected a header name' });
const copiedHeader = headerName.refine(isSettableHeader, { error: SETTABLE_HEADER });
const addedHeader = z.string().refine((name) => name === ':authority' || isSettableHeader(name), {
  error: `${SETTABLE_HEADER}, or \`:authority\` for the host of the call`,
});

export const schema = z
  .strictObject({
    host: z
      .string()
      .min(1)
      .describe(
        'Address of the authorization service: `host:port`, a URL without a path, or `unix:/path/of/socket`.',
      ),
    protocol: z
      .strictObject({
        http: z
          .strictObject({
            path: expression
              .optional()
              .describe(
                'CEL expression for path and query of the request to the service; those of the client by default.',
              ),
            addRequestHeaders: z
              .record(addedHeader, expression)
              .default({})
              .describe(
                'Headers for the service, as CEL expressions; `:authority` sets the host. One that fails is left out; a value of `:authority` that is no host denies the request.',
              ),
            includeResponseHeaders: z
              .array(copiedHeader)
              .default([])
              .describe("Headers of the service's reply that the backend receives."),
            redirect: expression
              .optional()
              .describe(
                'CEL expression for a URL to send the client to (302) when the service answers 401 or 403.',
              ),
            metadata: metadata.optional().describe('Same as `metadata` beside `host`.'),
          })
          .describe('Ask over HTTP.'),
      })
      .optional()
      .describe('How the service is asked.'),
    metadata: metadata
      .optional()
      .describe(
        "Values taken from the service's reply (`response`), as CEL expressions; read as `extauthz.<name>`. One that fails is left out.",
      ),
    includeRequestHeaders: z
      .array(headerName)
      .default(['authorization'])
      .describe('Headers of the client that the service receives.'),
    failureMode: z
      .union([
        z.enum(['deny', 'allow']),
        z.strictObject({ denyWithStatus: z.int().min(400).max(599).describe('Status of the refusal.') }),
      ])
      .default('deny')
      .describe('What happens when the service cannot be asked.'),
    denyResponse: z
      .enum(['fixed', 'passthrough'])
      .default('fixed')
      .describe("What a refused client gets: 403 with a fixed text, or the service's own reply."),
  })
  .describe('Asks an external service whether a request may pass.');

export type Config = z.output<typeof schema>;
