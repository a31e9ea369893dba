import type { HeaderList } from '../kernel/header-list.ts';
import type { RequestContext } from '../kernel/request-context.ts';
import { DecodedBody, isDecodable } from '../transport/decoded-body.ts';
import type { UpstreamBody } from '../transport/upstream-body.ts';
import { llmError } from './errors.ts';

/**
 * The body of a provider's answer without compression: some compress although they were told not to. A compressed one
 * could pass neither the meter, nor guardrails, nor the search for the key. Corrects the headers. Throws an `AppError`
 * (502) for an encoding that is not known, or a body that does not begin as its encoding says.
 */
export async function decodedAnswer(
  ctx: RequestContext,
  headers: HeaderList,
  body: UpstreamBody,
): Promise<UpstreamBody> {
  const coding = headers.all('content-encoding').join(', ').trim().toLowerCase();
  if (coding === '' || coding === 'identity') return body;
  if (!isDecodable(coding)) {
    body.discard();
    throw undecodable(ctx, `the answer has the content-encoding \`${coding.slice(0, 100)}\``);
  }
  headers.delete('content-encoding');
  headers.delete('content-length');
  const decoded = new DecodedBody(body, coding);
  // The head of a stream goes to the client at once: nothing may come behind it for long.
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
