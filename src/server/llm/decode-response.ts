import type { HeaderList } from '../kernel/header-list.ts';
import type { RequestContext } from '../kernel/request-context.ts';
import { DecodedBody, isDecodable } from '../transport/decoded-body.ts';
import type { UpstreamBody } from '../transport/upstream-body.ts';
import { llmError } from './errors.ts';

/**
 * Decompresses a provider's response and corrects its headers. Some providers compress despite `accept-encoding:
 * identity`, but metering, guardrails and key redaction need the plain bytes. Throws an `AppError` (502) for an unknown
 * encoding or a body that does not match it.
 */
export async function decodeResponse(
  ctx: RequestContext,
  headers: HeaderList,
  body: UpstreamBody,
): Promise<UpstreamBody> {
  const coding = headers.all('content-encoding').join(', ').trim().toLowerCase();
  if (coding === '' || coding === 'identity') return body;
  if (!isDecodable(coding)) {
    body.discard();
    throw undecodable(ctx, `the response has the content-encoding \`${coding.slice(0, 100)}\``);
  }
  headers.delete('content-encoding');
  headers.delete('content-length');
  const decoded = new DecodedBody(body, coding);
  // The head of a stream is sent immediately, so the first bytes of the body are not awaited.
  const isStream = headers.get('content-type')?.toLowerCase().startsWith('text/event-stream') === true;
  if (!isStream) await decoded.started;
  if (decoded.failed !== undefined) throw undecodable(ctx, decoded.failed);
  return decoded.body;
}

const undecodable = ({ endpoint }: RequestContext, why: string): Error =>
  llmError(
    'upstream_invalid',
    'upstream_failed',
    'failed to process LLM response: it cannot be decoded',
    `${endpoint}: ${why}`,
  );
