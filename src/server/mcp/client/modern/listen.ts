import { edit, valueAt } from '../../../kernel/json/json-text.ts';
import type { Connection } from '../../connection/connection.ts';
import type { CallHandler, JsonRpcConnection } from '../../connection/json-rpc-connection.ts';
import { subscriptionProblem } from '../../connection/subscribed-resources.ts';
import { filterOf, LISTS, type NotificationFilter } from '../../eras/viewed-subscriptions.ts';
import { answerError, answerFailure } from '../../federation/call.ts';
import { inwardName, outwardName } from '../../names/names.ts';
import { parseMessage, type RpcMessage } from '../../protocol/message.ts';
import { withSubscription } from '../../protocol/meta-text.ts';
import {
  META,
  notificationMessage,
  RPC,
  RpcError,
  requestMessage,
  resultMessage,
} from '../../protocol/protocol.ts';
import type { ModernCall } from './modern-call.ts';

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';

/** Answers `subscriptions/listen` with a stream of the changes at all targets, until the client or a target ends it. */
export function listen(call: ModernCall): void {
  const { session, message } = call;
  const filter = filterOf(message.params['notifications']);
  const { limits } = session.options;
  const { resourceSubscriptions: uris = [] } = filter;
  // Callers without authentication share a session.
  const maxStreams = session.owner === undefined ? limits.sessions : limits.inFlightPerSession;
  const characters = uris.reduce((sum, uri) => sum + uri.length, 0);
  const problem =
    session.listening.size >= maxStreams
      ? `more than ${maxStreams} subscriptions/listen requests of this client are open`
      : subscriptionProblem(uris.length, characters, limits);
  if (problem !== undefined) {
    answerError(call, new RpcError(RPC.internalError, problem));
    return;
  }
  new Listening(call, filter).start().catch((error: unknown) => answerFailure(call, error));
}

/** One `subscriptions/listen` request of a client: it is sent to each target that it concerns. */
class Listening {
  readonly #call: ModernCall;
  readonly #filter: NotificationFilter;
  /** The clients's id of the request, as JSON text. */
  readonly #id: string;
  readonly #upstream = new Map<JsonRpcConnection, number>();
  /** What the targets agreed to send. */
  readonly #agreed: NotificationFilter[] = [];
  /** Notifications that arrived before all targets had acknowledged. */
  #early: string[] | undefined = [];

  constructor(call: ModernCall, filter: NotificationFilter) {
    this.#call = call;
    this.#filter = filter;
    this.#id = call.message.id ?? 'null';
  }

  async start(): Promise<void> {
    const { session } = this.#call;
    session.listening.add(this);
    this.#call.onCancelled = () => this.#stop();
    this.#call.onExpired = () => {
      this.end();
      return true;
    };
    await Promise.all(session.connections.map((connection) => this.#open(connection)));
    this.#acknowledge();
  }

  /** Ends the stream with a response, so that the client knows that it may listen again ("Graceful Closure"). */
  end(): void {
    if (this.#early !== undefined) this.#acknowledge();
    const result = `{"resultType":"complete","_meta":{"${META.subscription}":${this.#id}}}`;
    this.#call.stream.end(resultMessage(this.#id, result));
    this.#stop();
  }

  #stop(): void {
    this.#call.session.listening.delete(this);
    for (const [rpc, id] of this.#upstream) rpc.cancel(id, 'the client no longer listens');
    this.#upstream.clear();
  }

  /** Sends the request to one target. Resolves when the target has acknowledged or failed, or takes too long. */
  async #open(connection: Connection): Promise<void> {
    const { headers, meta, session, stream } = this.#call;
    let rpc: JsonRpcConnection;
    try {
      ({ rpc } = await connection.readySoon(headers, true));
    } catch {
      // A target that is not available sends no notifications; its calls fail with the reason.
      return;
    }
    const notifications = this.#filterFor(connection);
    if (notifications === undefined || !stream.isOpen) return;
    const params = { _meta: meta, notifications };
    const request = parseMessage(requestMessage('0', 'subscriptions/listen', params));
    const answered = Promise.withResolvers<void>();
    const ended = (): void => {
      answered.resolve();
      if (!this.#upstream.delete(rpc)) return;
      // After the acknowledgment, the client may listen again; before it, the target just takes no part.
      if (this.#early === undefined) this.end();
    };
    const handler: CallHandler = {
      related: (message) => {
        if (message.method === ACKNOWLEDGED) {
          this.#agreed.push(this.#outward(connection, filterOf(message.params['notifications'])));
          answered.resolve();
        } else this.#notify(connection, message);
      },
      response: ended,
      failure: ended,
      cancelled: () => answered.resolve(),
    };
    this.#upstream.set(rpc, rpc.forward(request, headers, handler));
    const timer = setTimeout(() => answered.resolve(), session.options.limits.targetResponseWait);
    await answered.promise;
    clearTimeout(timer);
  }

  /** The part of the filter that concerns a target, in its own names; undefined if nothing does. */
  #filterFor({ target, capabilities = {} }: Connection): NotificationFilter | undefined {
    const { access, session } = this.#call;
    const lists = LISTS.filter(([kind, member]) => this.#filter[member] === true && kind in capabilities);
    const uris =
      'resources' in capabilities
        ? (this.#filter.resourceSubscriptions ?? []).flatMap((uri) => {
            if (!session.options.prefixed) return [uri];
            const addressed = inwardName('resource', uri);
            return addressed?.target === target.name ? [addressed.name] : [];
          })
        : [];
    const allowed = uris.filter((uri) => access?.allows('resource', target.name, uri) ?? true);
    if (lists.length === 0 && allowed.length === 0) return undefined;
    return {
      ...Object.fromEntries(lists.map(([, member]) => [member, true])),
      ...(allowed.length > 0 && { resourceSubscriptions: allowed }),
    };
  }

  #outward({ target }: Connection, filter: NotificationFilter): NotificationFilter {
    if (!this.#call.session.options.prefixed || filter.resourceSubscriptions === undefined) return filter;
    const uris = filter.resourceSubscriptions.map((uri) => outwardName('resource', target.name, uri));
    return { ...filter, resourceSubscriptions: uris };
  }

  #acknowledge(): void {
    const early = this.#early;
    if (early === undefined) return;
    this.#early = undefined;
    const lists = LISTS.filter(([, member]) => this.#agreed.some((agreed) => agreed[member] === true));
    const subscribed = new Set(
      this.#agreed.flatMap(({ resourceSubscriptions = [] }) => resourceSubscriptions),
    );
    const uris = (this.#filter.resourceSubscriptions ?? []).filter((uri) => subscribed.has(uri));
    const notifications = {
      ...Object.fromEntries(lists.map(([, member]) => [member, true])),
      ...(uris.length > 0 && { resourceSubscriptions: uris }),
    };
    const { stream } = this.#call;
    stream.send(withSubscription(notificationMessage(ACKNOWLEDGED, { notifications }), this.#id));
    for (const text of early) stream.send(text);
  }

  #notify(connection: Connection, message: RpcMessage): void {
    const { session, stream } = this.#call;
    if (message.method.endsWith('/list_changed')) session.nameIndex.changed(connection, message.method);
    const text = withSubscription(this.#renamed(connection, message), this.#id);
    if (this.#early === undefined) {
      // A client that does not keep up gets no further changes, and its stream ends soon.
      if (!stream.isStalled) stream.send(text);
    } else if (this.#early.length < session.options.limits.queuedMessages) this.#early.push(text);
  }

  #renamed({ target }: Connection, { method, params: { uri }, text }: RpcMessage): string {
    if (method !== 'notifications/resources/updated' || typeof uri !== 'string') return text;
    const span = valueAt(text, ['params', 'uri']);
    if (!this.#call.session.options.prefixed || span === undefined) return text;
    return edit(text, [{ ...span, text: JSON.stringify(outwardName('resource', target.name, uri)) }]);
  }
}
