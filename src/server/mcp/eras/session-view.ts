import { messageOf } from '../../../core/errors.ts';
import { parseJson, stringIn, textIn } from '../../../core/foreign.ts';
import type { Limits } from '../../../core/limits.ts';
import { members, valueAt } from '../../kernel/json/json-text.ts';
import { TransientMap } from '../../kernel/transient-map.ts';
import { type ClientHeaders, NO_HEADERS } from '../connection/client-headers.ts';
import { ListPages } from '../connection/list-pages.ts';
import type { Channel, ChannelEvents, SendOptions } from '../connection/target.ts';
import { type Envelope, envelopeMeta, mirroredName } from '../protocol/envelope.ts';
import { initializeResultFor } from '../protocol/initialize-result.ts';
import {
  answeredRequest,
  idOfInvalid,
  numberOfId,
  parseMessage,
  type RpcMessage,
  requestNumber,
  TARGET_BOUNDS,
  withId,
} from '../protocol/message.ts';
import { withMeta, withoutEnvelope, withParams } from '../protocol/meta-text.ts';
import { addParamHeaders, type ParamHeader, paramHeaders } from '../protocol/param-headers.ts';
import {
  errorMessage,
  notificationMessage,
  RPC,
  requestMessage,
  resultMessage,
} from '../protocol/protocol.ts';
import { SessionListening } from './session-listening.ts';

/** One request of the client, which may take several requests to the server. */
interface ViewedCall {
  readonly outer: number;
  readonly headers: ClientHeaders;
  readonly headTimeout: number | undefined;
  /** The client's request with `_meta`, for another round. */
  readonly message: RpcMessage;
  /** Id of the latest request to the server. */
  inner: number;
  rounds: number;
  /** Pages of the list of tools, which is requested after the headers of the call were rejected. */
  pages: ListPages | undefined;
  /** Answers of the client as JSON texts by the server's key; undefined while one is missing. */
  readonly answers: Map<string, string | undefined>;
  /** As JSON text. */
  state: string | undefined;
}

/** What the view needs to know about its server and client. */
export interface SessionViewOptions {
  readonly targetName: string;
  /** Result of `server/discover`. */
  readonly discovered: RpcMessage;
  readonly client: Envelope;
  readonly limits: Limits;
}

/**
 * Shows a server that only has revision 2026-07-28 as one with sessions, to one client. It answers `initialize`, `ping` and
 * `logging/setLevel` itself and adds the client's capabilities and log level to each request. A result `input_required` becomes
 * requests to the client, whose answers are sent with the next round. Subscriptions share one `subscriptions/listen`.
 */
export class SessionView implements Channel {
  readonly sessionId = undefined;
  readonly #channel: Channel;
  readonly #outer: ChannelEvents;
  readonly #options: SessionViewOptions;
  readonly #calls = new TransientMap<number, ViewedCall>();
  /** Requests to the client, by their id as JSON text. */
  readonly #asked = new Map<string, { readonly call: ViewedCall; readonly key: string }>();
  /** Calls that are repeated after a list of the tools, by the id of its request. */
  readonly #repeated = new Map<number, ViewedCall>();
  readonly #listening: SessionListening;
  /** What the tools declare that their calls repeat in headers. */
  readonly #paramHeaders = new Map<string, readonly ParamHeader[]>();
  #level: string | undefined;
  #nextId = 100;
  #nextRequest = 1;
  #isClosed = false;

  constructor(channel: Channel, outer: ChannelEvents, options: SessionViewOptions) {
    this.#channel = channel;
    this.#outer = outer;
    this.#options = options;
    this.#listening = new SessionListening(
      channel,
      options,
      () => this.#nextId++,
      (text, id) => outer.message(text, id),
    );
  }

  readonly events: ChannelEvents = {
    message: (text, inReplyTo) => this.#receive(text, inReplyTo),
    invalid: (text, problem, id) => this.#outer.invalid(text, problem, this.#outerId(id)),
    failed: (id, error) => this.#failed(id, error),
    awaits: (id) => this.#calls.has(id) || this.#repeated.has(id) || this.#listening.is(id),
    onlyRequest: () => {
      const [id, other] = [...this.#calls.values().map(({ inner }) => inner), ...this.#repeated.keys()];
      return other === undefined ? id : undefined;
    },
    suspended: (id) => {
      const call = this.#calls.get(id);
      if (call !== undefined) this.#outer.suspended(call.outer);
    },
    sessionLost: () => undefined,
    closed: (error) => {
      this.#isClosed = true;
      this.#listening.close();
      this.#outer.closed(error);
    },
  };

  get hasProcess(): boolean {
    return this.#channel.hasProcess === true;
  }

  get lastUsed(): number | undefined {
    return this.#channel.lastUsed;
  }

  send(text: string, { id, message: sent, headers = NO_HEADERS, headTimeout }: SendOptions): void {
    const message = sent ?? parseMessage(text, TARGET_BOUNDS);
    if (id !== undefined) this.#request(message, id, headers, headTimeout);
    else if (message.kind === 'response') this.#answered(message);
    else if (message.method === 'notifications/cancelled') this.#cancel(message);
  }

  agreed(): void {}
  abandon(): void {}

  listen(headers: ClientHeaders): void {
    this.#listening.listenToLists(headers);
  }

  pause(paused: boolean): void {
    this.#channel.pause(paused);
  }

  diagnosis(isStarting?: boolean): string {
    return this.#channel.diagnosis?.(isStarting) ?? '';
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#listening.close();
    return this.#channel.close();
  }

  #request(
    message: RpcMessage,
    outer: number,
    headers: ClientHeaders,
    headTimeout: number | undefined,
  ): void {
    const { method, params } = message;
    switch (method) {
      case 'initialize':
        this.#reply(outer, initializeResultFor(params['protocolVersion'], this.#options));
        return;
      case 'ping':
        this.#reply(outer, '{}');
        return;
      case 'logging/setLevel':
        this.#level = stringIn(params['level']);
        this.#reply(outer, '{}');
        return;
      case 'resources/subscribe':
      case 'resources/unsubscribe':
        this.#listening.subscribe(message, outer, headers);
        return;
      default: {
        const { client } = this.#options;
        const envelope = JSON.stringify(envelopeMeta({ ...client, logLevel: this.#level }));
        const text = withMeta(message.text, envelope.slice(1, -1));
        const call: ViewedCall = {
          outer,
          headers,
          headTimeout,
          message: parseMessage(text, TARGET_BOUNDS),
          inner: 0,
          rounds: 0,
          pages: undefined,
          answers: new Map(),
          state: undefined,
        };
        this.#send(call, call.message);
      }
    }
  }

  #send(call: ViewedCall, message: RpcMessage): void {
    const { method, params } = message;
    const id = this.#nextId++;
    call.inner = id;
    this.#calls.set(id, call);
    const declared = method === 'tools/call' ? this.#paramHeaders.get(textIn(params['name'])) : undefined;
    const headers = declared === undefined ? [] : paramHeaders(declared, params['arguments']);
    this.#channel.send(withId(message, String(id)), {
      id,
      method,
      name: mirroredName(message),
      headers: { ...call.headers, list: [...call.headers.list, ...headers] },
      headTimeout: call.headTimeout,
    });
  }

  /** Lists the tools, whose declarations the client does not know, and repeats a call whose headers were rejected. */
  #listAndRepeat(call: ViewedCall, { cursor }: ListPages): void {
    const id = this.#nextId++;
    const params = { _meta: envelopeMeta(this.#options.client), cursor };
    const message = parseMessage(requestMessage(String(id), 'tools/list', params), TARGET_BOUNDS);
    this.#repeated.set(id, call);
    const { headers, headTimeout } = call;
    this.#channel.send(message.text, { id, method: 'tools/list', headers, headTimeout });
  }

  #reply(outer: number, result: string): void {
    this.#outer.message(resultMessage(String(outer), result), outer);
  }

  /** The client's request that belongs to a request to the server, which is over then. */
  #outerId(id: number | undefined): number | undefined {
    const call = id === undefined ? undefined : this.#calls.get(id);
    if (call !== undefined) this.#calls.delete(call.inner);
    return call?.outer;
  }

  #receive(text: string, inReplyTo: number | undefined): void {
    let message: RpcMessage;
    try {
      message = parseMessage(text, TARGET_BOUNDS);
    } catch (error) {
      const id = this.#outerId(inReplyTo ?? requestNumber(idOfInvalid(text)));
      this.#outer.invalid(text, messageOf(error), id);
      return;
    }
    if (message.kind === 'response') this.#receiveResponse(message, inReplyTo);
    else if (message.kind === 'notification') this.#receiveNotification(message, inReplyTo);
    // A server of this revision must not send requests. An answer to `ping` does no harm.
    else {
      const { id = 'null', method } = message;
      const refused = errorMessage(id, RPC.methodNotFound, 'requests are not accepted');
      this.#channel.send(method === 'ping' ? resultMessage(id, '{}') : refused, {});
    }
  }

  #receiveResponse(message: RpcMessage, inReplyTo: number | undefined): void {
    const only = this.#calls.size === 1 ? this.#calls.values()[0]?.inner : undefined;
    const id = answeredRequest(message, inReplyTo, only);
    if (id === undefined) return;
    if (this.#listening.is(id)) {
      this.#listening.ended();
      return;
    }
    const repeated = this.#repeated.get(id);
    if (repeated !== undefined) {
      this.#repeated.delete(id);
      addParamHeaders(this.#paramHeaders, message.result);
      const { pages } = repeated;
      if (!this.#outer.awaits(repeated.outer)) return;
      if (pages?.next(message.result, 0) === 'more') this.#listAndRepeat(repeated, pages);
      else this.#send(repeated, repeated.message);
      return;
    }
    const call = this.#calls.get(id);
    if (call === undefined) return;
    this.#calls.delete(id);
    const { method } = call.message;
    if (method === 'tools/list') addParamHeaders(this.#paramHeaders, message.result);
    if (method === 'tools/call' && message.error?.code === RPC.headerMismatch && call.pages === undefined) {
      call.pages = new ListPages();
      this.#listAndRepeat(call, call.pages);
      return;
    }
    const { resultType } = (message.result ?? {}) as { resultType?: unknown };
    if (resultType === 'input_required') this.#ask(call, message);
    else this.#outer.message(withId(message, String(call.outer)), call.outer);
  }

  /** Requests the input from the client. */
  #ask(call: ViewedCall, { text }: RpcMessage): void {
    call.rounds += 1;
    const { inputRounds, retryDelayMin } = this.#options.limits;
    if (call.rounds > inputRounds) {
      this.#fail(call, `the server requested input more than ${inputRounds} times`);
      return;
    }
    const state = valueAt(text, ['result', 'requestState']);
    call.state = state && text.slice(state.start, state.end);
    call.answers.clear();
    const requests = valueAt(text, ['result', 'inputRequests']);
    const asked = requests !== undefined && text[requests.start] === '{' ? members(text, requests.start) : [];
    // Without requests, the server wants the same request again, when it may have made progress.
    if (asked.length === 0) setTimeout(() => this.#nextRound(call), retryDelayMin).unref();
    // All of them are known before the first can be answered.
    for (const [key] of asked) call.answers.set(key, undefined);
    for (const [key, { start, end }] of asked) {
      const request = text.slice(start, end);
      const method = valueAt(request, ['method']);
      const params = valueAt(request, ['params']);
      const isRequest = method !== undefined && request[method.start] === '"';
      if (!isRequest || (params !== undefined && request[params.start] !== '{')) {
        this.#forget(call);
        this.#fail(call, 'the server requested input with something that is not a request');
        return;
      }
      const id = `"agctl-input-${this.#nextRequest++}"`;
      this.#asked.set(id, { call, key });
      const shown = params === undefined ? '{}' : request.slice(params.start, params.end);
      this.#outer.message(
        `{"jsonrpc":"2.0","id":${id},"method":${request.slice(method.start, method.end)},"params":${shown}}`,
        call.outer,
      );
      // The client may not support the request.
      if (!this.#outer.awaits(call.outer)) return;
    }
  }

  #answered(message: RpcMessage): void {
    const { id = '', text, error } = message;
    const asked = this.#asked.get(id);
    if (asked === undefined) return;
    this.#asked.delete(id);
    const { call, key } = asked;
    if (error !== undefined) {
      this.#forget(call);
      this.#fail(call, `the client did not answer the server's request: ${error.message}`);
      return;
    }
    const result = valueAt(text, ['result']);
    call.answers.set(key, result === undefined ? '{}' : text.slice(result.start, result.end));
    if ([...call.answers.values()].every((answer) => answer !== undefined)) this.#nextRound(call);
  }

  /** Sends the request again, with the input of the client. */
  #nextRound(call: ViewedCall): void {
    if (this.#isClosed || !this.#outer.awaits(call.outer)) return;
    const answers = [...call.answers].map(([key, answer]) => `${JSON.stringify(key)}:${answer}`);
    const added = [
      ...(answers.length > 0 ? [`"inputResponses":{${answers.join(',')}}`] : []),
      ...(call.state === undefined ? [] : [`"requestState":${call.state}`]),
    ];
    const text = withParams(call.message.text, added.join(','));
    this.#send(call, parseMessage(text, TARGET_BOUNDS));
  }

  #failed(id: number, error: Error): void {
    if (this.#listening.is(id)) {
      this.#listening.ended();
      return;
    }
    const call = this.#calls.get(id) ?? this.#repeated.get(id);
    this.#calls.delete(id);
    this.#repeated.delete(id);
    if (call !== undefined) this.#outer.failed(call.outer, error);
  }

  #fail(call: ViewedCall, text: string): void {
    this.#outer.message(errorMessage(String(call.outer), RPC.internalError, text), call.outer);
  }

  /** Cancels a request of the client. */
  #cancel({ params }: RpcMessage): void {
    const outer = numberOfId(params['requestId']);
    for (const call of this.#calls.values()) {
      if (call.outer !== outer) continue;
      const id = call.inner;
      this.#calls.delete(id);
      this.#channel.send(notificationMessage('notifications/cancelled', { ...params, requestId: id }), {});
      this.#channel.abandon(id);
    }
    for (const [id, { call }] of this.#asked) {
      if (call.outer !== outer) continue;
      this.#asked.delete(id);
      this.#outer.message(notificationMessage('notifications/cancelled', { requestId: parseJson(id) }));
    }
  }

  #forget(call: ViewedCall): void {
    for (const [id, asked] of this.#asked) if (asked.call === call) this.#asked.delete(id);
  }

  #receiveNotification(message: RpcMessage, inReplyTo: number | undefined): void {
    const { method, text } = message;
    if (method === 'notifications/subscriptions/acknowledged') {
      this.#listening.acknowledged(message);
      return;
    }
    const call = inReplyTo === undefined ? undefined : this.#calls.get(inReplyTo);
    this.#outer.message(withoutEnvelope(text), call?.outer);
  }
}
