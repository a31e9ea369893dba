import { membersOf } from '../../../core/foreign.ts';
import type { Limits } from '../../../core/limits.ts';
import { type ClientHeaders, forLater, NO_HEADERS } from '../connection/client-headers.ts';
import { SubscribedResources } from '../connection/subscribed-resources.ts';
import type { Channel } from '../connection/target.ts';
import { type Envelope, envelopeMeta } from '../protocol/envelope.ts';
import { numberOfId, type RpcMessage } from '../protocol/message.ts';
import {
  errorMessage,
  META,
  notificationMessage,
  RPC,
  requestMessage,
  resultMessage,
} from '../protocol/protocol.ts';
import { filterOf } from './viewed-subscriptions.ts';

const LISTEN = 'subscriptions/listen';

interface Settings {
  readonly client: Envelope;
  readonly limits: Limits;
}

/** A request that is answered when the server has acknowledged what the client listens to. */
interface Unacknowledged {
  readonly outer: number;
  /** The resource that it subscribes to; undefined for `resources/unsubscribe`. */
  readonly uri: string | undefined;
}

/**
 * What one client with a session listens to at a server that only has `subscriptions/listen`: changes of lists while its GET
 * stream is open, and resources. One request to the server is for all of it, and is replaced by another when it changes.
 */
export class SessionListening {
  readonly #channel: Channel;
  readonly #options: Settings;
  readonly #nextId: () => number;
  /** Answers a request of the client. */
  readonly #answer: (text: string, outer: number) => void;
  readonly #uris: SubscribedResources;
  #unacknowledged: Unacknowledged[] = [];
  #current: number | undefined;
  #listensToLists = false;
  #headers: ClientHeaders = NO_HEADERS;
  #isClosed = false;

  constructor(
    channel: Channel,
    options: Settings,
    nextId: () => number,
    answer: (text: string, outer: number) => void,
  ) {
    this.#channel = channel;
    this.#options = options;
    this.#uris = new SubscribedResources(options.limits);
    this.#nextId = nextId;
    this.#answer = answer;
  }

  /** Whether that is the id of the current request to the server. */
  is(id: number): boolean {
    return id === this.#current;
  }

  /** The client has opened its GET stream. */
  listenToLists(headers: ClientHeaders): void {
    if (this.#listensToLists) return;
    this.#listensToLists = true;
    this.#replace(headers);
  }

  /** Handles `resources/subscribe` and `resources/unsubscribe`. */
  subscribe({ method, params: { uri } }: RpcMessage, outer: number, headers: ClientHeaders): void {
    const isNew = method === 'resources/subscribe';
    if (typeof uri !== 'string') this.#refuse(outer, 'expected params.uri to be a string');
    else {
      const problem = isNew ? this.#uris.add(uri) : undefined;
      if (problem !== undefined) {
        this.#refuse(outer, problem);
        return;
      }
      if (!isNew) this.#uris.delete(uri);
      this.#unacknowledged.push({ outer, uri: isNew ? uri : undefined });
      this.#replace(headers);
    }
  }

  /** The server has acknowledged a request. */
  acknowledged({ params }: RpcMessage): void {
    // It may be one that was replaced meanwhile, which lacks the resources that the current one is about.
    const subscription = membersOf(params['_meta'])[META.subscription];
    if (subscription !== undefined && numberOfId(subscription) !== this.#current) return;
    const { resourceSubscriptions = [] } = filterOf(params['notifications']);
    for (const { outer, uri } of this.#unacknowledged.splice(0)) {
      if (uri === undefined || resourceSubscriptions.includes(uri)) this.#succeed(outer);
      else {
        this.#uris.delete(uri);
        this.#refuse(outer, `the server does not support subscriptions to ${JSON.stringify(uri)}`);
      }
    }
  }

  /** The server has ended the current request: it is sent again while the client listens. */
  ended(): void {
    this.#current = undefined;
    for (const { outer, uri } of this.#unacknowledged.splice(0)) {
      if (uri !== undefined) this.#uris.delete(uri);
      this.#refuse(outer, 'the server ended its subscription stream', RPC.internalError);
    }
    if (this.#isClosed || !this.#isWanted) return;
    setTimeout(() => {
      if (!this.#isClosed && this.#current === undefined) this.#replace(this.#headers);
    }, this.#options.limits.retryDelayMax).unref();
  }

  close(): void {
    this.#isClosed = true;
  }

  get #isWanted(): boolean {
    return this.#listensToLists || this.#uris.size > 0;
  }

  #replace(headers: ClientHeaders): void {
    const previous = this.#current;
    this.#current = undefined;
    if (previous !== undefined) {
      this.#channel.send(notificationMessage('notifications/cancelled', { requestId: previous }), {});
      this.#channel.abandon(previous);
    }
    if (!this.#isWanted) {
      for (const { outer } of this.#unacknowledged.splice(0)) this.#succeed(outer);
      return;
    }
    const id = this.#nextId();
    this.#current = id;
    this.#headers = forLater(headers);
    const notifications = {
      ...(this.#listensToLists && {
        toolsListChanged: true,
        promptsListChanged: true,
        resourcesListChanged: true,
      }),
      ...(this.#uris.size > 0 && { resourceSubscriptions: [...this.#uris] }),
    };
    const params = { _meta: envelopeMeta(this.#options.client), notifications };
    this.#channel.send(requestMessage(String(id), LISTEN, params), { id, method: LISTEN, headers });
  }

  #succeed(outer: number): void {
    this.#answer(resultMessage(String(outer), '{}'), outer);
  }

  #refuse(outer: number, text: string, code: number = RPC.invalidParams): void {
    this.#answer(errorMessage(String(outer), code, text), outer);
  }
}
