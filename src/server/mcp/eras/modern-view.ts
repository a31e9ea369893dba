import { randomBytes } from 'node:crypto';
import { messageOf } from '../../../core/errors.ts';
import { membersOf, stringIn } from '../../../core/foreign.ts';
import type { Limits } from '../../../core/limits.ts';
import { edit, valueAt } from '../../kernel/json/json-text.ts';
import { TransientMap } from '../../kernel/transient-map.ts';
import { type ClientHeaders, NO_HEADERS } from '../connection/client-headers.ts';
import type { Channel, ChannelEvents, SendOptions } from '../connection/target.ts';
import { refusal, takesInput } from '../protocol/client-capabilities.ts';
import type { Envelope } from '../protocol/envelope.ts';
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
import { withoutEnvelope, withoutTask } from '../protocol/meta-text.ts';
import {
  errorMessage,
  META,
  notificationMessage,
  RPC,
  requestMessage,
  resultMessage,
} from '../protocol/protocol.ts';
import { completed } from '../protocol/results.ts';
import {
  callOfToken,
  inputRequired,
  NO_CALL,
  STATE_OF_ANOTHER,
  subjectOf,
  tokenOf,
  UNKNOWN_STATE,
  type ViewedCall,
  viewedCall,
  wantsLog,
} from './viewed-call.ts';
import { ViewedSubscriptions } from './viewed-subscriptions.ts';

/** Requests of servers that become requests for input. */
const INPUTS: ReadonlySet<string> = new Set(['sampling/createMessage', 'elicitation/create', 'roots/list']);

/**
 * Shows a server with sessions as one of revision 2026-07-28, in one session that belongs to one caller. A request of the
 * server during a call becomes the result `input_required`; the call continues at the server, and the client's next request
 * with the same `requestState` answers it. Log levels are set and resources subscribed in the session as requests need it.
 */
export class ModernView implements Channel {
  readonly sessionId = undefined;
  readonly #channel: Channel;
  readonly #outer: ChannelEvents;
  readonly #client: Envelope;
  readonly #capabilities: Readonly<Record<string, unknown>>;
  readonly #limits: Limits;
  readonly #calls = new TransientMap<number, ViewedCall>();
  readonly #waiting = new Map<string, ViewedCall>();
  /** Handlers of the view's own requests, by id. */
  readonly #own = new Map<number, (message: RpcMessage | undefined) => void>();
  readonly #subscriptions: ViewedSubscriptions;
  #level: string | undefined;
  #nextId = 1;

  constructor(
    channel: Channel,
    outer: ChannelEvents,
    client: Envelope,
    capabilities: Readonly<Record<string, unknown>>,
    limits: Limits,
  ) {
    this.#channel = channel;
    this.#outer = outer;
    this.#client = client;
    this.#capabilities = capabilities;
    this.#limits = limits;
    this.#subscriptions = new ViewedSubscriptions(capabilities, limits, {
      notify: (text, outerId) => outer.message(text, outerId),
      request: (method, params, headers) => this.#request(method, params, headers),
    });
  }

  /** Callbacks for the server's channel. */
  readonly events: ChannelEvents = {
    message: (text, inReplyTo) => this.#receive(text, inReplyTo),
    invalid: (text, problem, id) => this.#outer.invalid(text, problem, this.#outerId(id)),
    failed: (id, error) => this.#failed(id, error),
    awaits: (id) => this.#calls.has(id) || this.#own.has(id),
    onlyRequest: () => {
      const [id, other] = [...this.#calls.values().map((call) => call.id), ...this.#own.keys()];
      return other === undefined ? id : undefined;
    },
    suspended: (id) => {
      const outer = this.#calls.get(id)?.outer;
      if (outer !== undefined) this.#outer.suspended(outer);
    },
    sessionLost: () => this.#outer.closed(new Error('the server ended the session')),
    closed: (error) => {
      this.#forgetAll();
      this.#outer.closed(error);
    },
  };

  get hasProcess(): boolean {
    return this.#channel.hasProcess === true;
  }

  get lastUsed(): number | undefined {
    return this.#channel.lastUsed;
  }

  send(
    text: string,
    { id, method = '', message: sent, headers = NO_HEADERS, headTimeout }: SendOptions,
  ): void {
    const message = sent ?? parseMessage(text, TARGET_BOUNDS);
    if (id === undefined) {
      if (message.method === 'notifications/cancelled') this.#cancel(numberOfId(message.params['requestId']));
      return;
    }
    if (method === 'subscriptions/listen') {
      this.#channel.listen(headers);
      this.#subscriptions.open(id, message, headers);
    } else if (message.params['requestState'] !== undefined) this.#continue(message, id, headers);
    else this.#call(message, id, headers, headTimeout);
  }

  awaitsInput(requestState?: string): boolean {
    return requestState === undefined ? this.#waiting.size > 0 : this.#waiting.has(requestState);
  }

  agreed(): void {}
  abandon(): void {}
  listen(): void {}

  pause(paused: boolean): void {
    this.#channel.pause(paused);
  }

  diagnosis(isStarting?: boolean): string {
    return this.#channel.diagnosis?.(isStarting) ?? '';
  }

  close(): Promise<void> {
    this.#forgetAll();
    return this.#channel.close();
  }

  #call(message: RpcMessage, outer: number, headers: ClientHeaders, headTimeout: number | undefined): void {
    const logLevel = stringIn(membersOf(message.params['_meta'])[META.logLevel]);
    this.#setLevel(logLevel, headers);
    const call = viewedCall(this.#nextId++, message, outer, logLevel);
    this.#calls.set(call.id, call);
    const { id, method } = call;
    const own = withoutEnvelope(withId(message, String(id)));
    const text = message.params['task'] === undefined ? own : withoutTask(own);
    this.#channel.send(text, { id, method, headers, headTimeout });
  }

  /** A log level holds for one request here, but for the whole session at the server. */
  #setLevel(level: string | undefined, headers: ClientHeaders): void {
    if (level === undefined || level === this.#level || !('logging' in this.#capabilities)) return;
    this.#level = level;
    void this.#request('logging/setLevel', { level }, headers);
  }

  /** Sends a request of the view. Resolves to the response, or undefined after a failure. */
  #request(method: string, params: object, headers: ClientHeaders): Promise<RpcMessage | undefined> {
    const id = this.#nextId++;
    return new Promise((resolve) => {
      this.#own.set(id, resolve);
      this.#channel.send(requestMessage(String(id), method, params), { id, method, headers });
    });
  }

  /** The client's request that belongs to a request to the server, which is over then. */
  #outerId(id: number | undefined): number | undefined {
    const call = id === undefined ? undefined : this.#calls.get(id);
    if (call !== undefined) this.#forget(call);
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
    else if (message.kind === 'request') this.#receiveRequest(message, inReplyTo);
    else this.#receiveNotification(message, inReplyTo);
  }

  #receiveResponse(message: RpcMessage, inReplyTo: number | undefined): void {
    const only = this.#calls.size === 1 ? this.#calls.values()[0]?.id : undefined;
    const id = answeredRequest(message, inReplyTo, only);
    if (id === undefined) return;
    const own = this.#own.get(id);
    this.#own.delete(id);
    own?.(message);
    const call = this.#calls.get(id);
    if (call === undefined) return;
    if (call.outer === undefined) call.response = message;
    else this.#finish(call, call.outer, message);
  }

  #finish(call: ViewedCall, outer: number, message: RpcMessage): void {
    this.#forget(call);
    const text = withId(message, String(outer));
    const { error } = message;
    // -32002 is reserved for older revisions ("Error Codes").
    if (error?.code === RPC.resourceNotFound)
      this.#outer.message(errorMessage(String(outer), RPC.invalidParams, error.message, error.data), outer);
    else this.#outer.message(completed(text, call.method), outer);
  }

  #failed(id: number, error: Error): void {
    const own = this.#own.get(id);
    this.#own.delete(id);
    own?.(undefined);
    const outer = this.#outerId(id);
    if (outer !== undefined) this.#outer.failed(outer, error);
  }

  #receiveRequest(message: RpcMessage, inReplyTo: number | undefined): void {
    const { id = 'null', method } = message;
    const refused = refusal(message, this.#client.capabilities);
    if (method === 'ping') this.#answer(resultMessage(id, '{}'));
    else if (refused !== undefined) this.#answer(refused);
    else if (!INPUTS.has(method))
      this.#answer(errorMessage(id, RPC.methodNotFound, `the client does not support ${method}`));
    else {
      const call = this.#callFor(inReplyTo);
      if (call === undefined) this.#answer(errorMessage(id, RPC.internalError, NO_CALL));
      else {
        call.asked.set(`input-${call.asked.size + 1}-${call.rounds + 1}`, message);
        this.#ask(call);
      }
    }
  }

  /**
   * The call that a request of the server belongs to. A server on stdio does not say: the oldest that may take input and does
   * not wait for any, because most servers run calls in order; else the oldest that waits.
   */
  #callFor(inReplyTo: number | undefined): ViewedCall | undefined {
    const known = inReplyTo === undefined ? undefined : this.#calls.get(inReplyTo);
    if (known !== undefined && takesInput(known.method)) return known;
    const able = this.#calls.values().filter(({ method }) => takesInput(method));
    return able.find(({ outer }) => outer !== undefined) ?? able[0];
  }

  /** Answers the client's request with the unanswered requests of the server, unless the call waits already. */
  #ask(call: ViewedCall): void {
    const { outer } = call;
    if (outer === undefined) return;
    call.rounds += 1;
    if (call.rounds > this.#limits.inputRounds) {
      const text = `the server requested input more than ${this.#limits.inputRounds} times`;
      this.#drop(call, text);
      this.#outer.message(errorMessage(String(outer), RPC.internalError, text), outer);
      return;
    }
    const state = `agctl-${randomBytes(18).toString('base64url')}`;
    call.outer = undefined;
    call.state = state;
    this.#wait(state, call);
    this.#outer.message(resultMessage(String(outer), inputRequired(call.asked, state)), outer);
  }

  #wait(state: string, call: ViewedCall): void {
    const [oldest] = this.#waiting.values();
    if (this.#waiting.size >= this.#limits.callsAwaitingInput && oldest !== undefined)
      this.#drop(oldest, 'too many calls wait for input');
    this.#waiting.set(state, call);
    call.timer = setTimeout(
      () => this.#drop(call, 'the client did not send the input'),
      this.#limits.inputTimeout,
    ).unref();
  }

  /** Continues a call with the client's input. */
  #continue(message: RpcMessage, outer: number, headers: ClientHeaders): void {
    const { requestState } = message.params;
    const call = typeof requestState === 'string' ? this.#waiting.get(requestState) : undefined;
    if (call === undefined || subjectOf(call.message) !== subjectOf(message)) {
      const text = call === undefined ? UNKNOWN_STATE : STATE_OF_ANOTHER;
      this.#outer.message(errorMessage(String(outer), RPC.invalidParams, text), outer);
      return;
    }
    this.#stopWaiting(call);
    call.outer = outer;
    call.latestToken = tokenOf(message.text);
    for (const [key, { id = 'null' }] of call.asked) {
      const span = valueAt(message.text, ['params', 'inputResponses', key]);
      if (span === undefined) continue;
      call.asked.delete(key);
      this.#answer(resultMessage(id, message.text.slice(span.start, span.end)), headers);
    }
    const { progress } = call;
    call.progress = undefined;
    if (progress !== undefined) this.#receiveNotification(progress, undefined);
    if (call.response !== undefined) this.#finish(call, outer, call.response);
    else if (call.asked.size > 0) this.#ask(call);
  }

  #receiveNotification(message: RpcMessage, inReplyTo: number | undefined): void {
    const { method, text, params } = message;
    switch (method) {
      case 'notifications/progress': {
        const span = valueAt(text, ['params', 'progressToken']);
        const token = span && text.slice(span.start, span.end);
        if (span === undefined || token === undefined) return;
        const call = callOfToken(this.#calls.values(), token);
        if (call === undefined) return;
        // While the call waits, only the latest is kept: progress increases.
        if (call.outer === undefined) call.progress = message;
        else if (call.latestToken !== undefined)
          this.#outer.message(edit(text, [{ ...span, text: call.latestToken }]), call.outer);
        return;
      }
      case 'notifications/message': {
        const call = this.#loggingCall(inReplyTo);
        if (call?.outer !== undefined && wantsLog(call, params['level']))
          this.#outer.message(text, call.outer);
        return;
      }
      case 'notifications/cancelled':
        this.#withdraw(text);
        return;
      default:
        this.#subscriptions.receive(message);
        // Lists that the gateway has cached are out of date.
        if (method.endsWith('/list_changed')) this.#outer.message(text);
    }
  }

  /** The call that a log message belongs to. A server on stdio does not say: the only one with a log level. */
  #loggingCall(inReplyTo: number | undefined): ViewedCall | undefined {
    if (inReplyTo !== undefined) return this.#calls.get(inReplyTo);
    const [only, other] = this.#calls.values().filter(({ logLevel }) => logLevel !== undefined);
    return other === undefined ? only : undefined;
  }

  /** The server cancelled one of its requests: an answer to it is no longer needed. */
  #withdraw(text: string): void {
    const span = valueAt(text, ['params', 'requestId']);
    const id = span && text.slice(span.start, span.end);
    for (const { asked } of this.#calls.values())
      for (const [key, message] of asked) if (message.id === id) asked.delete(key);
  }

  /** Cancels a request of the client. */
  #cancel(outer: number | undefined): void {
    if (outer === undefined || this.#subscriptions.close(outer)) return;
    const call = this.#calls.values().find((each) => each.outer === outer);
    if (call !== undefined) this.#drop(call, 'cancelled by the client');
  }

  /** Cancels a call at the server. */
  #drop(call: ViewedCall, reason: string): void {
    for (const { id = 'null' } of call.asked.values())
      this.#answer(errorMessage(id, RPC.internalError, reason));
    this.#forget(call);
    if (call.response !== undefined) return;
    this.#channel.send(notificationMessage('notifications/cancelled', { requestId: call.id, reason }), {});
    this.#channel.abandon(call.id);
  }

  #answer(text: string, headers: ClientHeaders = NO_HEADERS): void {
    this.#channel.send(text, { headers });
  }

  #stopWaiting(call: ViewedCall): void {
    clearTimeout(call.timer);
    if (call.state !== undefined) this.#waiting.delete(call.state);
    call.state = undefined;
  }

  #forget(call: ViewedCall): void {
    this.#stopWaiting(call);
    this.#calls.delete(call.id);
  }

  #forgetAll(): void {
    for (const call of this.#calls.values()) this.#stopWaiting(call);
    this.#calls.clear();
    for (const handler of this.#own.values()) handler(undefined);
    this.#own.clear();
  }
}
