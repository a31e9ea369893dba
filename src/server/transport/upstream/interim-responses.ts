import { isRecord } from '../../../core/foreign.ts';

/**
 * Lets a connection of undici ignore 100 (Continue), which no request of the gateway asks for. RFC 9110 section 15.2: a client must
 * be able to parse 1xx responses that it does not expect. undici ignores all others, but closes the connection on this one, so
 * its parser is told that it is 102. The parser is not part of undici's API: without it, such a response stays a 502 that
 * says why (docs/decisions/0098). Call it when undici has taken the socket.
 */
export function ignoreContinue(socket: object): void {
  const key = Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'parser');
  const parser: unknown = key === undefined ? undefined : Reflect.get(socket, key);
  if (!isRecord(parser)) return;
  const { onHeadersComplete } = parser;
  if (typeof onHeadersComplete !== 'function') return;
  const asOther = (status: unknown, ...rest: unknown[]): unknown =>
    Reflect.apply(onHeadersComplete, parser, [status === CONTINUE ? PROCESSING : status, ...rest]);
  Reflect.set(parser, 'onHeadersComplete', asOther);
}

const CONTINUE = 100;
const PROCESSING = 102;
