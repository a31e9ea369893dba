import { elementsOf, membersOf } from '../../../core/foreign.ts';
import type { Log } from '../../../core/log.ts';
import { VERSION } from '../../../core/version.ts';
import type { ClientHeaders } from '../connection/client-headers.ts';
import { FIRST_PROBE_ID, JsonRpcConnection } from '../connection/json-rpc-connection.ts';
import type { Channel, ChannelEvents, Target } from '../connection/target.ts';
import { TargetFailure, timeoutFailure, UpstreamStatusError } from '../connection/target-failure.ts';
import { refusal } from '../protocol/client-capabilities.ts';
import { type Envelope, envelopeMeta } from '../protocol/envelope.ts';
import { capabilitiesIn, initializeResultOf } from '../protocol/initialize-result.ts';
import type { RpcMessage } from '../protocol/message.ts';
import {
  errorMessage,
  LATEST_SESSION_REVISION,
  MODERN_REVISION,
  notificationMessage,
  RPC,
  RpcError,
  SESSION_REVISIONS,
} from '../protocol/protocol.ts';
import { ChannelLink } from './channel-link.ts';
import { ModernView } from './modern-view.ts';
import { NO_CALL } from './viewed-call.ts';

// Which revisions a target accepts: 2026-07-28, the older ones with `initialize`, or both (2026-07-28, "Versioning",
// "Backward Compatibility"). It is asked for the client's first, so that nothing is converted if it accepts that.

/** A target that accepts requests of revision 2026-07-28: by itself, or through a view. */
export interface Discovered {
  readonly channel: Channel;
  readonly capabilities: Readonly<Record<string, unknown>>;
  /** The server's response to `server/discover`, or to `initialize` in an older revision. */
  readonly message: RpcMessage;
  /** Whether the server itself speaks revision 2026-07-28. */
  readonly isNative: boolean;
}

const legacySince = new WeakMap<Target, number>();

/** Whether the target is known to accept only the revisions with `initialize`. */
export function isKnownLegacy(target: Target): boolean {
  const since = legacySince.get(target);
  return since !== undefined && performance.now() - since < target.limits.legacyTargetMemory;
}

/**
 * Opens a channel on which a target speaks revision 2026-07-28: itself, or through a `ModernView` if it only has older
 * revisions. `client` is the caller in whose name that view opens a session. The channel is bound to `rpc`. Rejects with the
 * reason if the target cannot be started, does not answer within `LIMITS.initializeTimeout` or refuses the caller.
 */
export async function discoverTarget(
  target: Target,
  rpc: JsonRpcConnection,
  client: Envelope,
  headers: ClientHeaders,
  log: Log,
): Promise<Discovered> {
  const probe = new Probe(target, client, headers, log);
  const link = new ChannelLink(probe.events, (error) =>
    log.internalError('mcp', error, { target: target.name }),
  );
  const channel = await target.open(link.events);
  // Closing `rpc` ends the negotiation.
  rpc.bind(channel);
  try {
    const { message, isNative } = await probe.run(channel);
    if (isNative) {
      channel.agreed(MODERN_REVISION);
      link.receiver = rpc.events;
      return { channel, capabilities: capabilitiesOf(message), message, isNative };
    }
    legacySince.set(target, performance.now());
    const view = new ModernView(channel, rpc.events, client, capabilitiesOf(message), target.limits);
    link.receiver = view.events;
    rpc.bind(view);
    return { channel: view, capabilities: capabilitiesOf(message), message, isNative };
  } catch (error) {
    await channel.close();
    const hasExited = link.isClosed && target.endpoint === undefined;
    if (!hasExited || isKnownLegacy(target)) throw error;
    // It may have exited because of the request, which older servers need not tolerate before `initialize`.
    legacySince.set(target, performance.now());
    return discoverTarget(target, rpc, client, headers, log);
  }
}

/**
 * Asks a server that rejected `initialize` for revision 2026-07-28. `link` is that of its channel. Returns undefined if the
 * server has not that revision either.
 */
export async function discoverAfterRefusal(
  target: Target,
  channel: Channel,
  link: ChannelLink,
  client: Envelope,
  headers: ClientHeaders,
  log: Log,
): Promise<RpcMessage | undefined> {
  const probe = new Probe(target, client, headers, log);
  const { receiver } = link;
  link.receiver = probe.events;
  try {
    return await probe.discoverOnly(channel);
  } finally {
    link.receiver = receiver;
  }
}

/** Whether a server that rejected `initialize` may speak revision 2026-07-28 only. */
export const mayBeModern = (error: unknown): boolean =>
  error instanceof RpcError ||
  (error instanceof UpstreamStatusError && (error.status === 400 || error.status === 404));

interface Answer {
  readonly message: RpcMessage;
  readonly isNative: boolean;
}

/** Finds out on a new channel which revisions its server accepts. */
class Probe {
  readonly #target: Target;
  readonly #client: Envelope;
  readonly #headers: ClientHeaders;
  readonly #rpc: JsonRpcConnection;

  constructor(target: Target, client: Envelope, headers: ClientHeaders, log: Log) {
    this.#target = target;
    this.#client = client;
    this.#headers = headers;
    this.#rpc = new JsonRpcConnection(target, log, (message) => this.#refuse(message), FIRST_PROBE_ID);
  }

  /** Answers a request of the server with an error: there is no call of the client yet that could ask it for input. */
  #refuse(message: RpcMessage): void {
    if (message.kind !== 'request') return;
    const { id = 'null' } = message;
    const refused = refusal(message, this.#client.capabilities);
    this.#rpc.send(refused ?? errorMessage(id, RPC.internalError, NO_CALL), this.#headers);
  }

  /** Receives the messages of the channel while the probe runs. */
  get events(): ChannelEvents {
    return this.#rpc.events;
  }

  /** Rejects if the server accepts neither, refuses the caller, or does not answer in time. */
  async run(channel: Channel): Promise<Answer> {
    const { limits } = this.#target;
    this.#rpc.bind(channel);
    let timer: NodeJS.Timeout | undefined;
    const timedOut = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        const text = `no answer to server/discover and initialize within ${limits.initializeTimeout / 1000} s`;
        reject(timeoutFailure(this.#target, text, channel.diagnosis?.()));
      }, limits.initializeTimeout);
    });
    try {
      const answer = isKnownLegacy(this.#target) ? this.#initialize(channel) : this.#discover(channel);
      return await Promise.race([answer, timedOut]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Undefined if the server does not speak revision 2026-07-28, or not within `LIMITS.discoverTimeout`. */
  async discoverOnly(channel: Channel): Promise<RpcMessage | undefined> {
    this.#rpc.bind(channel);
    const answer = await this.#unlessSilent(this.#request(channel).catch(() => undefined));
    if (answer !== undefined && answer !== SILENT) return answer.message;
    channel.agreed(undefined);
    return undefined;
  }

  /** Sends `server/discover`. Resolves to undefined if the answer is that of a server with the older revisions. */
  async #request(channel: Channel): Promise<Answer | undefined> {
    channel.agreed(MODERN_REVISION);
    const params = JSON.stringify({ _meta: envelopeMeta(this.#client) });
    const send = (): Promise<RpcMessage> => this.#rpc.call('server/discover', params, this.#headers);
    try {
      const message = await send().catch((error: unknown) => {
        // A server that offers the revision which it has just rejected gets a second request ("Protocol Version Header").
        if (!offeredRevisions(error).includes(MODERN_REVISION)) throw error;
        return send();
      });
      return isModernResult(message) ? { message, isNative: true } : undefined;
    } catch (error) {
      if (isLegacyAnswer(error)) return undefined;
      throw error;
    }
  }

  async #discover(channel: Channel): Promise<Answer> {
    const discovered = this.#request(channel);
    const first = await this.#unlessSilent(discovered);
    if (first !== undefined && first !== SILENT) return first;
    channel.agreed(undefined);
    if (first === undefined) return this.#initialize(channel);
    // Slow to start, or it ignores the request: whichever of the two it answers first.
    const late = discovered.then(
      (answer) => answer ?? NEVER,
      () => NEVER,
    );
    const initialized = this.#initialize(channel).catch(async (error: unknown) => {
      // A server that only has this revision may refuse `initialize` before it answers the first request.
      const answer = offeredRevisions(error).includes(MODERN_REVISION) ? await discovered : undefined;
      if (answer === undefined) throw error;
      return answer;
    });
    return Promise.race([late, initialized]);
  }

  async #unlessSilent<T>(answer: Promise<T>): Promise<T | typeof SILENT> {
    let timer: NodeJS.Timeout | undefined;
    const silence = new Promise<typeof SILENT>((resolve) => {
      timer = setTimeout(resolve, this.#target.limits.discoverTimeout, SILENT);
    });
    return Promise.race([answer, silence]).finally(() => clearTimeout(timer));
  }

  async #initialize(channel: Channel): Promise<Answer> {
    const params = JSON.stringify({
      protocolVersion: LATEST_SESSION_REVISION,
      capabilities: this.#client.capabilities,
      clientInfo: this.#client.clientInfo ?? { name: 'agctl', version: VERSION },
    });
    const message = await this.#rpc.call('initialize', params, this.#headers);
    channel.agreed(initializeResultOf(message).protocolVersion);
    channel.send(notificationMessage('notifications/initialized'), { headers: this.#headers });
    return { message, isNative: false };
  }
}

const SILENT = Symbol('silent');
const NEVER = new Promise<never>(() => undefined);

function isModernResult({ result }: RpcMessage): boolean {
  return elementsOf(membersOf(result)['supportedVersions']).includes(MODERN_REVISION);
}

/** The revisions that a server offers instead of a rejected one; none for any other error. */
function offeredRevisions(error: unknown): readonly unknown[] {
  if (!(error instanceof RpcError) || error.code !== RPC.unsupportedVersion) return [];
  return elementsOf(membersOf(error.data)['supported']);
}

/**
 * Whether the answer to `server/discover` means that the server has the revisions with `initialize`: any error except those of
 * revision 2026-07-28. A refusal of the caller (401, 403) or a failure of the server (5xx) says nothing about it.
 */
function isLegacyAnswer(error: unknown): boolean {
  if (error instanceof RpcError) {
    if (error.code === RPC.unsupportedVersion)
      return SESSION_REVISIONS.some((revision) => offeredRevisions(error).includes(revision));
    return error.code !== RPC.headerMismatch && error.code !== RPC.missingCapability;
  }
  if (error instanceof UpstreamStatusError)
    return error.status < 500 && ![401, 403, 407, 429].includes(error.status);
  return error instanceof TargetFailure && error.isRefusedMethod;
}

/** The capabilities in a result of `server/discover` or `initialize`. */
const capabilitiesOf = ({ result }: RpcMessage): Readonly<Record<string, unknown>> =>
  capabilitiesIn(membersOf(result)['capabilities']);
