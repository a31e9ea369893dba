import type { AppError } from '../../../core/errors.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { LlmError } from '../errors.ts';
import type { ClientError } from '../formats/format.ts';
import { clientFormat } from '../request/endpoints.ts';

/** OpenAI clients retry later on this code; on other 4xx codes they give up. */
const RATE_LIMITED = 'rate_limit_exceeded';
const NO_QUOTA = 'insufficient_quota';

/** The body of an error raised by the gateway, by whichever policy, in the format of the client's call. */
export function errorBody(error: AppError, ctx: RequestContext): { type: string; text: string } {
  const format = clientFormat(ctx);
  const rejection = error.code === 'guardrail_rejected' ? error.body : undefined;
  // A body of another type than text is meant for the client as it is.
  const isText = rejection?.type.startsWith('text/plain') === true;
  if (rejection !== undefined && !(isText && format.wrapsRejections)) return rejection;
  const message = rejection?.text ?? error.message;
  const text = JSON.stringify(format.errorBody({ ...clientError(error), message }));
  return { type: 'application/json', text };
}

function clientError(error: AppError): ClientError {
  const { code, status, message } = error;
  if (code === 'rate_limited') return { status, type: RATE_LIMITED, code: RATE_LIMITED, message };
  // What OpenAI answers when the credit of an account is used up.
  if (code === 'budget_exceeded') return { status, type: NO_QUOTA, code: NO_QUOTA, message };
  const type = status < 500 ? 'invalid_request_error' : 'api_error';
  return { status, type, code: error instanceof LlmError ? error.llmCode : code, message };
}
