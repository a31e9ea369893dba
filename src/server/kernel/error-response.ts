import { AppError, messageOf } from '../../core/errors.ts';
import { HeaderList } from './header-list.ts';
import type { Reply, RequestContext } from './request-context.ts';

/**
 * The only place where a failure becomes an answer. A table error gives its status and public text; anything
 * else is a bug and gives a plain 500 whose cause goes to the log alone.
 */
export function replyToError(thrown: unknown, ctx: RequestContext): Reply {
  const error =
    thrown instanceof AppError
      ? thrown
      : new AppError('internal', { detail: messageOf(thrown), cause: thrown });
  ctx.reason = error.reason;
  ctx.error = error.message;
  ctx.errorDetail = error.detail;
  const { type, text } = error.body ?? ctx.api?.errorBody(error) ?? plainBody(error);
  const headers = new HeaderList(error.headers);
  headers.append('content-type', type);
  return { status: error.status, headers, body: text };
}

const plainBody = ({ message }: AppError): { type: string; text: string } => ({
  type: 'text/plain; charset=utf-8',
  text: message,
});

/** A reply with a text body. */
export function textReply(status: number, body: string, contentType = 'text/plain; charset=utf-8'): Reply {
  return { status, headers: new HeaderList(['content-type', contentType]), body };
}

/** An empty reply, as 202 for a notification. */
export function emptyReply(status: number): Reply {
  return { status, headers: new HeaderList(), body: undefined };
}
