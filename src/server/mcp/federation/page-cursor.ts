import { jsonIn, membersOf } from '../../../core/foreign.ts';
import { edit, valueAt, withoutMembers } from '../../kernel/json/json-text.ts';
import { parseMessage, type RpcMessage } from '../protocol/message.ts';

// Cursors of the lists of a single target, whose pages clients request one by one. Those of merged lists: `list-pages.ts`.

/** Prefix of the cursors that the gateway makes. The target's own cursor follows, as JSON. */
const MARK = 'agctl:';

/** The request for a page with the cursor that the target has sent. */
export function withOwnCursor(message: RpcMessage): RpcMessage {
  const { cursor } = message.params;
  if (typeof cursor !== 'string' || !cursor.startsWith(MARK)) return message;
  const own = jsonIn(cursor.slice(MARK.length));
  const span = valueAt(message.text, ['params', 'cursor']);
  if (span === undefined || (typeof own !== 'number' && typeof own !== 'string')) return message;
  return parseMessage(edit(message.text, [{ ...span, text: JSON.stringify(own) }]));
}

/**
 * A page, as JSON text, with a cursor that clients accept. The official SDKs refuse a list whose cursor is a number, so a number is
 * wrapped in a string. A cursor that equals the one of the request would make clients ask for the same page forever
 * (DeusData/codebase-memory-mcp#1247): it is removed, as is anything that is neither a string nor a number.
 */
export function withClientCursor(text: string, { params }: RpcMessage, result: unknown): string {
  const { nextCursor } = membersOf(result);
  const isText = typeof nextCursor === 'string';
  if (nextCursor === undefined) return text;
  if ((!isText && typeof nextCursor !== 'number') || nextCursor === params['cursor'])
    return withoutMembers(text, ['result'], (key) => key === 'nextCursor');
  const span = valueAt(text, ['result', 'nextCursor']);
  // A gateway behind this one marks its own.
  if (span === undefined || (isText && !nextCursor.startsWith(MARK))) return text;
  return edit(text, [{ ...span, text: JSON.stringify(MARK + JSON.stringify(nextCursor)) }]);
}
