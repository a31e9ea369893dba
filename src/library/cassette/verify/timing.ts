import type { Exchange } from '../format.ts';
import { cancelledBy, idText, isEndless, isUnanswered } from '../session-tape.ts';
import { jsonOf, rpcMethod } from '../tape.ts';

/** When the response of an exchange had ended, as far as it is known. */
export function endOf(exchange: Exchange): number {
  const { at, response } = exchange;
  if (isEndless(exchange)) return Number.POSITIVE_INFINITY;
  return at + Math.max(response.ms, response.events?.at(-1)?.ms ?? 0);
}

/** Calls that their client had cancelled while they ran, by the notifications that did it. */
export function cancelledCalls(exchanges: readonly Exchange[]): ReadonlyMap<Exchange, Exchange> {
  const calls = new Map<Exchange, Exchange>();
  for (const exchange of exchanges) {
    const id = cancelledBy(jsonOf(exchange.request.body));
    if (id === undefined) continue;
    const call = exchanges.findLast(
      ({ at, session, request }) =>
        at <= exchange.at &&
        session === exchange.session &&
        (rpcMethod(request.body) ?? '') !== '' &&
        idText(jsonOf(request.body)) === id,
    );
    if (call !== undefined && (isUnanswered(call) || endOf(call) > exchange.at)) calls.set(exchange, call);
  }
  return calls;
}
