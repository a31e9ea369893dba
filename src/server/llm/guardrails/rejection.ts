import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import { AppError } from '../../../core/errors.ts';
import { mapping } from '../../../core/schema/mapping.ts';
import { headerChanges, headerChangesSchema } from '../../kernel/request/header-changes.ts';
import { HeaderList } from '../../kernel/request/header-list.ts';

/** Upstream's form of a body. */
const bytes = z.array(z.int().min(0).max(255)).refine((list) => isUtf8(Buffer.from(list)), {
  error: 'expected bytes that are text in UTF-8',
});

/** The default text is upstream's. */
export const rejectionSchema = z.lazy(() =>
  mapping('Response to a call that the guardrail rejects.', {
    status: z.int().min(200).max(599).default(403).describe('Status of the response.'),
    body: z
      .union([z.string(), bytes])
      .default('The request was rejected due to inappropriate content')
      .describe(
        'Body of the response, sent as it is: text, or a list of its bytes in UTF-8. In a stream, the message of its error event.',
      ),
    headers: headerChangesSchema
      .optional()
      .describe('Changes to the headers of the response, such as `set: { content-type: application/json }`.'),
  }),
);

/** What the client gets if a guardrail rejects. */
export interface Rejection {
  readonly status: number;
  readonly body: string;
  /** Alternating names and values. */
  readonly headers: readonly string[];
}

/** The body is plain text, so that browsers do not render it, unless the configuration sets another content type. */
const DEFAULT_HEADERS = ['content-type', 'text/plain; charset=utf-8', 'x-content-type-options', 'nosniff'];

export function compileRejection({ status, body, headers }: z.output<typeof rejectionSchema>): Rejection {
  const list = new HeaderList([...DEFAULT_HEADERS]);
  if (headers !== undefined) headerChanges(headers)(list);
  return { status, body: typeof body === 'string' ? body : Buffer.from(body).toString(), headers: list.raw };
}

/** The rejection of a webhook, which chooses status and body. */
export const webhookRejection = (status: number, body: string): Rejection => ({
  status,
  body,
  headers: DEFAULT_HEADERS,
});

/** The error for the client. `kind`: the key of the guardrail, for the log. */
export function rejectionError({ status, body, headers }: Rejection, kind: string): AppError {
  const list = new HeaderList([...headers]);
  const type = list.get('content-type') ?? 'text/plain; charset=utf-8';
  list.delete('content-type');
  return new AppError('guardrail_rejected', {
    status,
    message: `request rejected by ${kind} guardrail`,
    body: { type, text: body },
    headers: list.raw,
  });
}
