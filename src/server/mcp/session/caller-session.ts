import { isRecord, membersOf } from '../../../core/foreign.ts';
import type { EventStream } from '../../../core/sse.ts';
import type { RequestObserver } from '../../kernel/observer.ts';
import { type ClientHeaders, NO_HEADERS } from '../connection/client-headers.ts';
import type { Connection, OpenTarget } from '../connection/connection.ts';
import type { JsonRpcConnection } from '../connection/json-rpc-connection.ts';
import type { SessionEnded } from '../connection/target-failure.ts';
import { discoverTarget, isKnownLegacy } from '../eras/negotiation.ts';
import { takesInput } from '../protocol/client-capabilities.ts';
import type { Envelope } from '../protocol/envelope.ts';
import { descriptionIn, type InitializeResult } from '../protocol/initialize-result.ts';
import type { RpcMessage } from '../protocol/message.ts';
import { errorMessage, META, MODERN_REVISION, RPC } from '../protocol/protocol.ts';
import { connectAll } from './initialize.ts';
import { Session, type SessionOptions } from './session.ts';

/** Capabilities that let servers send requests to a client. */
const ASKABLE = ['sampling', 'elicitation', 'roots'];

/**
 * Connections to all targets that the requests of one caller share. Requests of revision 2026-07-28 have no session; this one
 * is internal to the gateway and has no id that a client knows.
 */
export class CallerSession extends Session {
  readonly client: Envelope;
  /** The client's description of itself, which a server with sessions sees once. */
  readonly description: string;
  #connected: Promise<void> | undefined;
  /** Number of requests that use the session. */
  inUse = 0;
  /** Number of those during which a server may request input. */
  #calls = 0;
  /** Open `subscriptions/listen` requests. */
  readonly listening = new Set<{ end(): void }>();
  /** Called when the last request has released the session. */
  onUnused: (() => void) | undefined;
  /** Called when the session has ended, whatever the reason. */
  onClosed: (() => void) | undefined;

  constructor(options: SessionOptions, owner: string | undefined, client: Envelope) {
    super(options, owner, opening(options, client));
    this.client = client;
    this.description = descriptionOf(client);
    this.version = MODERN_REVISION;
  }

  /** Connects to the targets; requests that come meanwhile wait for the same attempt. */
  connect(headers: ClientHeaders, observer?: RequestObserver): Promise<void> {
    this.#connected ??= connectAll(this, headers, observer);
    return this.#connected;
  }

  /** Whether every target itself speaks the revision, so that it sees the client's description in each request. */
  get isNative(): boolean {
    return this.connections.every(({ isNative }) => isNative === true);
  }

  /** Whether a request may run in this session now, beside `own` ones that were counted for it already. */
  accepts(method: string, own = 0): boolean {
    return !takesInput(method) || !this.#isExclusive || (this.#calls <= own && !this.awaitsInput());
  }

  /**
   * Whether it runs one call at a time. Without authentication, callers cannot be told apart, and over stdio and HTTP+SSE a
   * server with sessions does not say to which of several calls its request to the client belongs.
   */
  get #isExclusive(): boolean {
    if (this.owner !== undefined) return false;
    if (!ASKABLE.some((capability) => capability in this.client.capabilities)) return false;
    return this.connections.some(({ target }) => target.relatesMessages !== true && isKnownLegacy(target));
  }

  override get inFlight(): number {
    return this.inUse + (this.awaitsInput() ? 1 : 0);
  }

  /** A request uses the session, until `release`. */
  use(method: string): void {
    this.inUse += 1;
    if (takesInput(method)) this.#calls += 1;
    this.lastUsed = performance.now();
  }

  release(method: string): void {
    this.inUse -= 1;
    if (takesInput(method)) this.#calls -= 1;
    this.lastUsed = performance.now();
    if (this.inUse === 0) this.onUnused?.();
    if (this.isDraining) this.endStream();
  }

  override close(why?: SessionEnded): Promise<void> {
    this.onClosed?.();
    return super.close(why);
  }

  /** Whether one of its calls waits for input, under this `requestState` if one is given. */
  awaitsInput(requestState?: string): boolean {
    return this.connections.some(({ rpc }) => rpc?.channel?.awaitsInput?.(requestState) === true);
  }

  /** Ends the streams that have no end of their own once nothing else is in flight. */
  override endStream(): void {
    this.isDraining = true;
    if (this.inUse > this.listening.size) return;
    for (const listening of [...this.listening]) listening.end();
  }

  /**
   * Sends a notification to the client of the call that it belongs to. Servers of this revision send no requests. Notifications
   * for a client that reads slowly are dropped if the target's pipe, which cannot be paused, carries those of others.
   */
  override deliver(
    connection: Connection,
    rpc: JsonRpcConnection,
    message: RpcMessage,
    stream?: EventStream,
  ): void {
    if (message.method.endsWith('/list_changed')) {
      connection.timedOutLists.changed();
      this.nameIndex.changed(connection, message.method);
    }
    // A server of this revision must not send requests; it would wait for a response.
    if (message.kind === 'request')
      rpc.send(
        errorMessage(message.id ?? 'null', RPC.methodNotFound, 'requests are not accepted'),
        NO_HEADERS,
      );
    if (message.kind !== 'notification' || stream?.isOpen !== true) return;
    if (!stream.isStalled || connection.target.endpoint !== undefined) stream.send(message.text);
  }
}

function opening({ log }: SessionOptions, client: Envelope): OpenTarget {
  return async (target, rpc, headers, check) => {
    rpc.hasSeveralCallers = true;
    const { capabilities, message, isNative } = await discoverTarget(target, rpc, client, headers, log);
    check();
    const info = membersOf(membersOf(message.result)['_meta'])[META.serverInfo];
    const result: InitializeResult = {
      protocolVersion: MODERN_REVISION,
      ...descriptionIn(message.result),
      capabilities: isNative ? capabilities : withoutTasks(capabilities),
      ...(isRecord(info) && { serverInfo: info }),
    };
    return { result, message, isNative };
  };
}

/** Equal for equal descriptions. */
export const descriptionOf = ({ capabilities, clientInfo }: Envelope): string =>
  JSON.stringify([capabilities, clientInfo ?? null]);

/** Tasks of revision 2025-11-25 are another protocol than the extension of 2026-07-28. */
function withoutTasks(capabilities: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { tasks, ...others } = capabilities;
  return others;
}
