import { membersOf } from '../../core/foreign.ts';
import type { Exchange } from './format.ts';
import { jsonOf, rpcMethod } from './tape.ts';

/** An answer of the client to a request of the server, and when it came, in ms since the start of the recording. */
interface RecordedAnswer {
  readonly id: string;
  readonly at: number;
}

/** What was recorded in one MCP session. */
export class SessionTape {
  readonly #answers: readonly RecordedAnswer[];
  readonly #posts: readonly number[];
  /** Streams that the client has opened with GET. */
  readonly streams: readonly Exchange[];
  readonly #onStreams: ReadonlySet<string>;

  constructor(exchanges: readonly Exchange[]) {
    const posts = exchanges.filter(({ request }) => request.method === 'POST');
    this.#posts = posts.map(({ at }) => at);
    this.#answers = posts.flatMap(({ request, at }) => {
      const json = jsonOf(request.body);
      if (isAnswer(json)) return [{ id: idText(json), at }];
      const cancelled = cancelledBy(json);
      return cancelled === undefined ? [] : [{ id: cancellation(cancelled), at }];
    });
    this.streams = exchanges.filter(({ request }) => request.method === 'GET');
    this.#onStreams = new Set(this.streams.flatMap(requestsIn).map(({ id }) => id));
  }

  /**
   * The answers that the client had sent before this moment of an exchange, and that the server may have waited for: to requests on
   * the same stream, or on one of GET. Its cancellation counts as one.
   */
  answersBefore(time: number, exchange: Exchange): readonly RecordedAnswer[] {
    const own = new Set(requestsIn(exchange).map(({ id }) => id));
    own.add(cancellation(idText(jsonOf(exchange.request.body))));
    return this.#answers.filter(
      ({ id, at }) => at > exchange.at && at <= time && (own.has(id) || this.#onStreams.has(id)),
    );
  }

  /** How many messages the client had sent before this moment, and when the last one was. */
  postsBefore(time: number): { readonly count: number; readonly last: number } {
    const before = this.#posts.filter((at) => at <= time);
    return { count: before.length, last: before.at(-1) ?? 0 };
  }
}

/** Requests of the server on a stream. */
function requestsIn({ response }: Exchange): { readonly id: string }[] {
  return (response.events ?? [])
    .map(({ json }) => json)
    .filter((json) => typeof membersOf(json)['method'] === 'string' && 'id' in membersOf(json))
    .map((json) => ({ id: idText(json) }));
}

/** Whether a JSON-RPC message is an answer. */
export const isAnswer = (json: unknown): boolean => {
  const { jsonrpc, method, id } = membersOf(json);
  return jsonrpc === '2.0' && method === undefined && id !== undefined;
};

/** The id of the call that a notification cancels, as `idText`. */
export function cancelledBy(json: unknown): string | undefined {
  const { method, params } = membersOf(json);
  return method === 'notifications/cancelled' ? JSON.stringify(membersOf(params)['requestId']) : undefined;
}

/** What stands for the cancellation of a call among the ids of answers. */
export const cancellation = (id: string): string => `cancelled ${id}`;

/** Whether the stream of a call ended without an answer, as those of cancelled calls do. */
export const isUnanswered = ({ request, response: { events } }: Exchange): boolean => {
  const id = idText(jsonOf(request.body));
  return (
    rpcMethod(request.body) !== undefined &&
    id !== '' &&
    events !== undefined &&
    !events.some(({ json }) => !('method' in membersOf(json)) && idText(json) === id)
  );
};

/** The id of a JSON-RPC message as a text: `1` and `"1"` are others. */
export const idText = (json: unknown): string => JSON.stringify(membersOf(json)['id']) ?? '';

/** Whether requests at the path of an exchange are MCP messages. */
export const isMcp = ({ session, request }: Exchange): boolean =>
  session !== undefined || rpcMethod(request.body) !== undefined;

/** Whether a response is a stream that ends only when the client leaves, or the gateway stops. */
export const isEndless = ({ session, request, response: { cut, events } }: Exchange): boolean =>
  events !== undefined &&
  ((request.method === 'GET' && (session !== undefined || cut === 'client')) ||
    rpcMethod(request.body) === 'subscriptions/listen');
