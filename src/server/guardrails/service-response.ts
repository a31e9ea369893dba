import { LIMITS } from '../../core/limits.ts';
import type { RequestObserver } from '../kernel/observer.ts';
import type { Upstream } from '../transport/upstream/upstream.ts';
import type { UpstreamRequest } from '../transport/upstream/upstream-request.ts';
import { GuardrailError } from './outcome.ts';

export interface ServiceCall {
  /** What the service is called in errors, such as `webhook`. */
  readonly service: string;
  readonly timeoutMs: number;
  /** The client disconnects. */
  readonly signal: AbortSignal;
  readonly observer: RequestObserver | undefined;
}

/**
 * Sends a request to the service of a guardrail and returns the body of its response. Throws `GuardrailError` for a
 * status other than 2xx, a body over `LIMITS.guardrailBody`, or no complete response in time; otherwise undici's errors.
 */
export async function responseOf(
  upstream: Upstream,
  request: UpstreamRequest,
  call: ServiceCall,
): Promise<Buffer> {
  const timeout = AbortSignal.timeout(call.timeoutMs);
  const signal = AbortSignal.any([timeout, call.signal]);
  try {
    return await read(upstream, { ...request, signal }, call);
  } catch (error) {
    throw timeout.aborted ? new GuardrailError(`the ${call.service} timed out`) : error;
  }
}

async function read(
  upstream: Upstream,
  request: UpstreamRequest,
  { service, observer }: ServiceCall,
): Promise<Buffer> {
  const sent = upstream.request(request);
  const response = await (observer === undefined ? sent : observer.call(upstream.address, sent, 'guardrail'));
  const coding = response.headers['content-encoding'];
  if (coding !== undefined && coding !== 'identity') {
    response.body.on('error', () => undefined).destroy();
    throw new GuardrailError(
      `the ${service} answered with the content-encoding ${String(coding).slice(0, 100)}, which was not asked for`,
    );
  }
  const chunks: Buffer[] = [];
  let size = 0;
  const received: AsyncIterable<Buffer> = response.body;
  for await (const chunk of received) {
    size += chunk.length;
    if (size > LIMITS.guardrailBody)
      throw new GuardrailError(`the ${service} response exceeds ${LIMITS.guardrailBody} bytes`);
    chunks.push(chunk);
  }
  if (response.statusCode < 200 || response.statusCode > 299)
    throw new GuardrailError(`the ${service} responded with ${response.statusCode}`);
  return Buffer.concat(chunks);
}
