import { AppError, messageOf } from '../../core/errors.ts';
import { envelope } from '../llm/errors.ts';
import { HeaderList } from './header-list.ts';
import type { Exchange, Reply } from './request-context.ts';

/**
 * The only place where a failure becomes an answer. A table error gives its status and public text; anything
 * else is a bug and gives a plain 500 whose cause goes to the log alone.
 */
export function replyToError(thrown: unknown, x: Exchange): Reply {
  const error =
    thrown instanceof AppError
      ? thrown
      : new AppError('internal', { detail: messageOf(thrown), cause: thrown });
  x.reason = error.reason;
  x.error = error.message;
  x.errorDetail = error.detail;
  const { type, text } = error.body ?? errorBody(error, x);
  const headers = new HeaderList(error.headers);
  headers.append('content-type', type);
  return { status: error.status, headers, body: text };
}

/** Clients wait and try again when they read this; after another 4xx they give up. */
const RATE_LIMITED = 'rate_limit_exceeded';

/** Clients of LLM routes expect the envelope of the OpenAI API whoever refuses them. */
function errorBody(error: AppError, x: Exchange): { type: string; text: string } {
  if (x.protocol === 'llm' && error.code === 'rate_limited')
    return envelope(error.message, RATE_LIMITED, RATE_LIMITED);
  if (x.protocol === 'llm')
    return envelope(error.message, error.status < 500 ? 'invalid_request_error' : 'api_error', error.code);
  return { type: 'text/plain; charset=utf-8', text: error.message };
}

/** A reply with a text body. */
export function textReply(status: number, body: string, contentType = 'text/plain; charset=utf-8'): Reply {
  return { status, headers: new HeaderList(['content-type', contentType]), body };
}

/** An empty reply, as 202 for a notification. */
export function emptyReply(status: number): Reply {
  return { status, headers: new HeaderList(), body: undefined };
}
