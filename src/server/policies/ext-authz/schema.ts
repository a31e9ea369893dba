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
              .describe('CEL expression for path and query of the call; those of the request by default.'),
            addRequestHeaders: z
              .record(addedHeader, expression)
              .default({})
              .describe(
                'Headers for the service, as CEL expressions; `:authority` sets the host. A header whose expression fails is omitted; an `:authority` that is not a host denies the request.',
              ),
            includeResponseHeaders: z
              .array(copiedHeader)
              .default([])
              .describe("Headers of the service's response that are added to the request to the backend."),
            redirect: expression
              .optional()
              .describe(
                'CEL expression for a URL to redirect the client to (302) if the service answers 401 or 403.',
              ),
            metadata: metadata.optional().describe('Same as `metadata` next to `host`.'),
          })
          .describe('Call the service over HTTP.'),
      })
      .optional()
      .describe('Protocol of the service.'),
    metadata: metadata
      .optional()
      .describe(
        "Values from the service's response (`response`), as CEL expressions, which other expressions read as `extauthz.<name>`. A value whose expression fails is omitted.",
      ),
    includeRequestHeaders: z
      .array(headerName)
      .default(['authorization'])
      .describe('Headers of the request that are sent to the service.'),
    failureMode: z
      .union([
        z.enum(['deny', 'allow']),
        z.strictObject({ denyWithStatus: z.int().min(400).max(599).describe('Deny with this status.') }),
      ])
      .default('deny')
      .describe('What happens if the service cannot be reached or times out.'),
    denyResponse: z
      .enum(['fixed', 'passthrough'])
      .default('fixed')
      .describe("Response to a denied request: 403 with a fixed text, or the service's response."),
  })
  .describe('Asks an external service whether a request is allowed.');

export type Config = z.output<typeof schema>;
