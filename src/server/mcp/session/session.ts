import { membersOf, parseJson } from '../../../core/foreign.ts';
import { LIMITS, type Limits } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import type { EventStream } from '../../../core/sse.ts';
import { whileAdmitted } from '../../kernel/admission.ts';
import { edit, valueAt } from '../../kernel/json/json-text.ts';
import type { SlotHolder } from '../../kernel/slot.ts';
import { TransientMap } from '../../kernel/transient-map.ts';
import { type ClientHeaders, NO_HEADERS } from '../connection/client-headers.ts';
import { Connection, type OpenTarget } from '../connection/connection.ts';
import type { JsonRpcConnection } from '../connection/json-rpc-connection.ts';
import type { Target } from '../connection/target.ts';
import type { SessionEnded } from '../connection/target-failure.ts';
import { outwardMessage, outwardName } from '../names/names.ts';
import type { UnmatchedSettings } from '../names/unmatched-settings.ts';
import { acceptsUrls, type Capabilities, refusal } from '../protocol/client-capabilities.ts';
import { canonicalId, parseMessage, type RpcMessage, TARGET_BOUNDS } from '../protocol/message.ts';
import type { MessageGuards } from '../request-fields.ts';
import { KeptResults, type ResultPool } from '../result-limits/kept-results.ts';
import type { ToolSearch } from '../tool-search/tool-search.ts';
import { NameIndex } from './name-index.ts';
import { ResumableStreams } from './resumable-streams.ts';
import { ServerRequests } from './server-requests.ts';
import { ServerStream } from './server-stream.ts';
import type { SessionRecord } from './shared-sessions.ts';

/** First revision with resumable response streams. Revisions are dates, so they compare as strings. */
const RESUMABLE_SINCE = '2025-11-25';

/** Settings that all sessions of one MCP backend share. */
export interface SessionOptions {
  readonly backend: string;
  readonly targets: readonly Target[];
  /** Whether names of items are prefixed with their target's name. */
  readonly prefixed: boolean;
  /** Whether a session fails if one target fails. */
  readonly failClosed: boolean;
  /** Whether clients of revisions with sessions get none. */
  readonly isStateless: boolean;
  /** Set if clients search for tools. */
  readonly toolSearch?: ToolSearch | undefined;
  /** Set if settings of the backend name tools. */
  readonly unmatched?: UnmatchedSettings | undefined;
  /** Whether results of tools have a limit (`maxResultTokens`). */
  readonly limitsResults: boolean;
  /** Set if sessions keep the rest of results over their limit. */
  readonly results?: ResultPool | undefined;
  readonly log: Log;
  readonly limits: Limits;
}

/** A request of the client in flight. */
interface RunningRequest {
  /** The client's id (`canonicalId`); undefined if the client cannot cancel it by its id. */
  readonly clientId: string | undefined;
  readonly stream: EventStream;
  /** Connection that it was sent on; undefined before that. */
  readonly rpc: JsonRpcConnection | undefined;
  /** Cancels the request, because nobody waits for its response any more. */
  cancel(reason: string): void;
}

/** One client's MCP session, with a connection to every target. */
export class Session {
  readonly options: SessionOptions;
  /** Hash of the authenticated caller that the session belongs to; undefined without authentication. */
  readonly owner: string | undefined;
  readonly connections: readonly Connection[];
  readonly nameIndex: NameIndex;
  readonly resumable: ResumableStreams;
  /** The protocol revision negotiated with the client; empty until the session is registered. */
  version = '';
  /** Empty until the session is registered. */
  id = '';
  /** When its client began to wait for it, in ms of `performance.now()`. */
  createdAt = performance.now();
  /** Time of the last use, in ms of `performance.now()`. */
  lastUsed = performance.now();
  /** Requests of the client in flight, oldest first, by a number of their own: clients may use an id several times. */
  readonly running = new TransientMap<number, RunningRequest>();
  #nextRunning = 1;
  closed = false;
  /** Whether another process with the same key can continue it. */
  isResumable = false;
  /** Its record in the shared store, if there is one. */
  record: SessionRecord | undefined;
  /** Stops asking whether its caller is still let in. */
  #stopAsking: (() => void) | undefined;
  /** The gateway shuts down: the GET stream ends with the last call. */
  protected isDraining = false;
  readonly #stream = new ServerStream(this);
  /** When the client sent `notifications/initialized`. Clients that open a GET stream do so after that. */
  #initializedAt: number | undefined;
  readonly requests: ServerRequests;
  /** Set if its client can read the rest of results over their limit. */
  keptResults: KeptResults | undefined;

  /** The client's `initialize` parameters as JSON text; empty while they are not known. */
  initializeParams = '';
  #capabilities: Capabilities | undefined;
  /** Created by another process, and the session id does not contain the client's `initialize` parameters. */
  readonly isClientUnknown: boolean;

  constructor(
    options: SessionOptions,
    owner: string | undefined,
    openTarget: OpenTarget,
    isClientUnknown = false,
  ) {
    this.options = options;
    this.nameIndex = new NameIndex(options.limits);
    this.resumable = new ResumableStreams(options.limits);
    this.isClientUnknown = isClientUnknown;
    this.owner = owner;
    this.connections = options.targets.map(
      (target) =>
        new Connection(target, options.log, openTarget, (connection, message, rpc) =>
          this.deliver(connection, rpc, message),
        ),
    );
    this.requests = new ServerRequests({ isFederated: this.isFederated, log: options.log });
    this.keptResults = options.results && new KeptResults(options.results, options.limits);
  }

  /** Whether messages are routed by names and ids. A single target without prefix receives all messages unchanged. */
  get isFederated(): boolean {
    return this.connections.length > 1 || this.options.prefixed;
  }

  /** Whether the client accepts events without data, which older revisions do not define. */
  get canResume(): boolean {
    return this.version >= RESUMABLE_SINCE;
  }

  /** Prefix of the id for the log (12 characters): the whole id is a credential. */
  get shortId(): string {
    return this.id.slice(0, 12);
  }

  get inFlight(): number {
    return this.running.size;
  }

  /** The requests in flight under an id of the client, as JSON text; those that a client reads, if there are any. */
  runningUnder(id: string): RunningRequest[] {
    const canonical = canonicalId(id);
    const calls = this.running.values().filter(({ clientId }) => clientId === canonical);
    const read = calls.filter(({ stream }) => stream.hasReader);
    return read.length > 0 ? read : calls;
  }

  /** Number of messages that wait for the client to open a stream. */
  get queued(): number {
    return this.#stream.queued + this.requests.waiting;
  }

  /** Number of requests of servers that the client has not answered yet. */
  get unanswered(): number {
    return this.requests.unanswered;
  }

  get hasOpenStream(): boolean {
    return this.#stream.isOpen;
  }

  /** From when on its child processes may be stopped for others, as of `performance.now`; undefined if it has none, or uses them. */
  get evictableFrom(): number | undefined {
    if (this.inFlight > 0 || !this.connections.some(({ hasProcess }) => hasProcess)) return undefined;
    const { evictionListening, evictionIdle } = this.options.limits;
    return this.lastUsed + (this.hasOpenStream ? evictionListening : evictionIdle);
  }

  /** Opens the GET stream, now with these headers at HTTP targets; an earlier GET stream ends. */
  openStream(headers: ClientHeaders): EventStream {
    const stream = this.#stream.open();
    for (const connection of this.connections) connection.listen(headers);
    return stream;
  }

  /** The client has opened or resumed the GET stream. */
  streamOpened(stream: EventStream): void {
    this.requests.opened(stream);
  }

  /** A request of the client has ended. */
  callEnded(): void {
    // The session is idle from now on, not from the start of a long call.
    this.lastUsed = performance.now();
    if (this.isDraining) this.endStream();
  }

  /** Registers a request of the client that is now in flight. Returns its key in `running`. */
  track(call: RunningRequest): number {
    const key = this.#nextRunning++;
    this.running.set(key, call);
    this.requests.opened(call.stream);
    return key;
  }

  /** Stops child processes that have been unused for the idle timeout of their target; the next request restarts them. */
  stopIdleChildren(): void {
    if (this.inFlight + this.unanswered > 0) return;
    for (const connection of this.connections) connection.stopIfIdle();
  }

  /** The client has confirmed the session. */
  initialized(): void {
    this.#initializedAt ??= performance.now();
  }

  /**
   * Sends a server's notification or request to the client. `stream` is the stream of the call that it belongs to, if known.
   * Without an open stream, requests wait or are refused (`ServerRequests`); at most `LIMITS.queuedMessages` notifications
   * are queued, and the oldest is dropped first.
   */
  deliver(connection: Connection, rpc: JsonRpcConnection, received: RpcMessage, stream?: EventStream): void {
    const message = this.isFederated ? withOutwardTasks(received, connection.target.name) : received;
    if (message.kind === 'request') {
      this.#sendRequest(rpc, message, stream);
      return;
    }
    if (message.method === 'notifications/cancelled') {
      const cancelled = this.requests.cancel(rpc, message);
      if (cancelled !== undefined) this.#streamFor(rpc, cancelled.stream)?.send(cancelled.text);
      return;
    }
    const isChange = message.method.endsWith('/list_changed');
    if (isChange) {
      connection.timedOutLists.changed();
      this.nameIndex.changed(connection, message.method);
    }
    const text = this.#renamed(connection, message);
    if (stream?.isOpen) stream.send(text);
    else this.#stream.send(text, isChange);
  }

  /** Whether the client opens links for its user. */
  get acceptsUrls(): boolean {
    return this.capabilities !== undefined && acceptsUrls(this.capabilities);
  }

  /** Sends a notification of the gateway itself to the client. */
  sendOwn(text: string): void {
    if (!this.closed) this.#stream.send(text, false);
  }

  /** What the client supports; undefined if that is not known. */
  protected get capabilities(): Capabilities | undefined {
    if (this.initializeParams === '') return undefined;
    this.#capabilities ??= membersOf(membersOf(parseJson(this.initializeParams))['capabilities']);
    return this.#capabilities;
  }

  #sendRequest(rpc: JsonRpcConnection, message: RpcMessage, stream: EventStream | undefined): void {
    const { capabilities } = this;
    const refused = capabilities && refusal(message, capabilities);
    if (refused !== undefined) {
      rpc.send(refused, NO_HEADERS);
      return;
    }
    const carrier = this.#streamFor(rpc, stream);
    // The GET stream outlives every call, so no response is held back for a request on it.
    if (carrier !== undefined)
      this.requests.send(rpc, message, carrier, carrier === stream || carrier === this.#stream.reader);
    else if (this.#stream.isInterrupted) this.requests.queue(rpc, message, this.options.limits.resumeTimeout);
    else if (this.#mayOpenStream) this.requests.queue(rpc, message, LIMITS.firstStreamWait);
    else this.requests.unreachable(rpc, message);
  }

  /**
   * The stream on which a request can reach the client, in this order: the stream of the call that it belongs to, the GET
   * stream, and the stream of any call in flight, preferring calls at the same server and the oldest one that carries no
   * request yet, since servers mostly run calls in order. Many clients never open the GET stream, and over stdio a server
   * does not say which call a request belongs to. The last choice is the stream of its call while the client is
   * disconnected: the client may reconnect and resume it.
   */
  #streamFor(rpc: JsonRpcConnection, stream: EventStream | undefined): EventStream | undefined {
    if (stream?.hasReader) return stream;
    if (this.#stream.reader !== undefined) return this.#stream.reader;
    const calls = this.running.values().filter((call) => call.stream.hasReader);
    const own = calls.filter((call) => call.rpc === rpc);
    const other = this.requests.leastBusy((own.length > 0 ? own : calls).map((call) => call.stream));
    return other ?? (stream?.isOpen ? stream : undefined);
  }

  /**
   * Whether the client may still open its first GET stream, for `LIMITS.firstStreamWait` after `initialized`. Servers request
   * roots as soon as they are initialized, before the client can have opened it.
   */
  get #mayOpenStream(): boolean {
    if (this.#stream.hasBeenOpen) return false;
    return (
      this.#initializedAt === undefined || performance.now() - this.#initializedAt < LIMITS.firstStreamWait
    );
  }

  /** Passes the client's response to the server that sent the request. A response to an unknown request is dropped. */
  answer(message: RpcMessage, headers: ClientHeaders, guards: MessageGuards | undefined): void {
    if (this.requests.answer(message, headers, guards)) return;
    this.options.log.debug('mcp', 'a response to an unknown request was dropped', {
      id: message.id?.slice(0, LIMITS.logFieldLength),
    });
  }

  /**
   * Ends the GET stream once no call is in flight: clients reconnect at once, and report an error if nobody listens any more
   * while their call still runs. The client may open another stream.
   */
  endStream(): void {
    this.isDraining = true;
    if (this.running.size === 0) this.#stream.end(this.options.limits.drainRetry);
  }

  /** Calls `end` once the caller of this request, to whom the session belongs, is no longer let in. */
  whileAdmitted(ctx: SlotHolder, end: (why: string) => void): void {
    if (!this.closed) this.#stopAsking ??= whileAdmitted(ctx, end);
  }

  /** Ends the GET stream and closes all connections; `why` is the failure of calls in flight. Further calls do nothing. */
  async close(why?: SessionEnded): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.#stopAsking?.();
    this.#stream.close();
    this.requests.close();
    this.resumable.close();
    this.keptResults?.release();
    await Promise.all(this.connections.map((connection) => connection.close(why)));
  }

  #renamed(connection: Connection, message: RpcMessage): string {
    const { text, params, method } = message;
    if (!this.options.prefixed || method !== 'notifications/resources/updated') return text;
    const span = valueAt(text, ['params', 'uri']);
    const { uri } = params;
    if (span === undefined || typeof uri !== 'string') return text;
    return edit(text, [
      { ...span, text: JSON.stringify(outwardName('resource', connection.target.name, uri)) },
    ]);
  }
}

function withOutwardTasks(message: RpcMessage, target: string): RpcMessage {
  const text = outwardMessage(message.text, target, message.method);
  return text === message.text ? message : parseMessage(text, TARGET_BOUNDS);
}

/** Forwards a notification of the client to the targets that it concerns. */
export function notify(session: Session, message: RpcMessage, headers: ClientHeaders): void {
  switch (message.method) {
    case 'notifications/cancelled':
      cancelCall(session, message);
      return;
    case 'notifications/progress':
      if (hasSingleTarget(session)) break;
      session.requests.progress(message, headers);
      return;
    case 'notifications/tasks/status':
      // The server that the task belongs to is unknown. These notifications are optional for clients, so none relies on them.
      if (hasSingleTarget(session)) break;
      return;
    case 'notifications/initialized':
      session.initialized();
      break;
  }
  for (const connection of session.connections) connection.notify(message, headers);
}

const hasSingleTarget = ({ connections }: Session): boolean => connections.length === 1;

/**
 * Cancels a call by the client's id. Targets know the call by another id. If several requests have that id, none is cancelled:
 * claude.ai uses the id 1 for all requests of several conversations in one session (anthropics/claude-ai-mcp#539), so the
 * gateway would most likely end another conversation's call. Its client ends a call by closing its connection.
 */
function cancelCall(session: Session, { text, params }: RpcMessage): void {
  const span = valueAt(text, ['params', 'requestId']);
  if (span === undefined) return;
  const { reason } = params;
  const [call, another] = session.runningUnder(text.slice(span.start, span.end));
  if (another === undefined) call?.cancel(typeof reason === 'string' ? reason : 'cancelled by the client');
  else
    session.options.log.debug('mcp', 'a cancellation was ignored: several requests have that id', {
      'mcp.session.id': session.shortId,
    });
}
