import { AppError } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import type { UpstreamBody } from '../transport/upstream/upstream-body.ts';
import { llmError } from './errors.ts';
import { type LlmCall, refuse } from './llm-call.ts';

/**
 * Reads a whole body, counting its bytes as output of `call`. Throws an `AppError`: 502 if it ends early, or is longer than
 * `LIMITS.responseBodyBytes`, of which nothing counts; 504 if the provider stops sending.
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
          // The client gets nothing of it, and the provider's token counts are in the part that was not read.
          if (call !== undefined) refuse(call);
          reject(tooLarge(ctx));
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

function tooLarge({ endpoint }: RequestContext): AppError {
  const limit = `the response is larger than ${LIMITS.responseBodyBytes} bytes`;
  return llmError(
    'upstream_invalid',
    'upstream_failed',
    `failed to process LLM response: ${limit}, the most that the gateway reads whole: ask for fewer tokens, or for a stream`,
    `${endpoint}: ${limit}. Guardrails for responses and translations need all of it, unless it is a stream`,
  );
}
