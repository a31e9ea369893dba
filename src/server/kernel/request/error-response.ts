import { AppError, messageOf } from '../../../core/errors.ts';
import { HeaderList } from './header-list.ts';
import type { Policy, Reply, RequestContext } from './request-context.ts';

/**
 * Converts an error to a response; the only place that does. An `AppError` determines status and public message. Any
 * other error is a bug: status 500, with its message and stack in the log only.
 */
export function replyToError(thrown: unknown, ctx: RequestContext): Reply {
  const error =
    thrown instanceof AppError
      ? thrown
      : new AppError('internal', { detail: messageOf(thrown), cause: thrown });
  if (error !== thrown) ctx.internalError = thrown;
  ctx.reason = error.reason;
  ctx.error = error.logged;
  ctx.errorDetail = error.detail;
  const { type, text } = ctx.api?.errorBody(error, ctx) ?? error.body ?? plainBody(error);
  const headers = new HeaderList(error.headers);
  headers.append('content-type', type);
  return { status: error.status, headers, body: text };
}

/**
 * Runs the response phase of one policy. If it throws, the response may lack what it had to change: it is replaced by one
 * with status 500. The phases of the other policies still run, because each may have something to release.
 */
export function runResponse(policy: Policy, ctx: RequestContext, reply: Reply): Reply {
  try {
    policy.response?.(ctx, reply);
    return reply;
  } catch (error) {
    discardReply(reply);
    ctx.reply = replyToError(error, ctx);
    return ctx.reply;
  }
}

/** Discards a reply that is not sent. */
export function discardReply({ body }: Reply): void {
  if (typeof body === 'object' && 'discard' in body) body.discard();
}

const plainBody = ({ message }: AppError): { type: string; text: string } => ({
  type: 'text/plain; charset=utf-8',
  text: message,
});

/** A reply with a text body. */
export function textReply(status: number, body: string, contentType = 'text/plain; charset=utf-8'): Reply {
  return { status, headers: new HeaderList(['content-type', contentType]), body };
}

/** A reply without a body. */
export function emptyReply(status: number): Reply {
  return { status, headers: new HeaderList(), body: undefined };
}

/**
 * The error for a request that validation rejects. `detail` is for the log, `message` for the client. The connection is
 * closed, because what follows on it may be ambiguous too.
 */
export function validationError(
  code: ConstructorParameters<typeof AppError>[0],
  detail?: string,
  message?: string,
): AppError {
  return new AppError(code, {
    headers: ['connection', 'close'],
    ...(detail === undefined ? {} : { detail }),
    ...(message === undefined ? {} : { message }),
  });
}
