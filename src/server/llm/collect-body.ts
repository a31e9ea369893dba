import { AppError } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import type { UpstreamBody } from '../transport/upstream/upstream-body.ts';
import type { LlmCall } from './llm-call.ts';

/**
 * Reads a whole body, counting its bytes as output of `call`. Throws an `AppError`: 502 if it is longer than
 * `LIMITS.responseBodyBytes` or ends early, 504 if the provider stops sending.
 */
export function collectBody(
  ctx: RequestContext,
  body: UpstreamBody,
  call: LlmCall | undefined,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    body.consume({
      push(chunk) {
        size += chunk.length;
        if (call !== undefined) call.outputBytes = size;
        if (size > LIMITS.responseBodyBytes) {
          body.discard();
          reject(
            new AppError('upstream_invalid', { message: 'failed to process LLM response: it is too large' }),
          );
        } else chunks.push(chunk);
        return true;
      },
      end: () => resolve(Buffer.concat(chunks)),
      fail: (why, isTimeout) =>
        reject(
          new AppError(isTimeout ? 'upstream_timeout' : 'upstream_invalid', {
            message: `upstream call failed: the provider ended the response early: ${why}`,
            ...(ctx.isAbandoned ? {} : { detail: `${ctx.endpoint}: ${why}` }),
          }),
        ),
    });
  });
}
