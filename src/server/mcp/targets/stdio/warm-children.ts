import { LIMITS, type Limits } from '../../../../core/limits.ts';
import type { Log } from '../../../../core/log.ts';
import type { ChildSlots } from '../../child-slots.ts';
import type { Channel, ChannelEvents } from '../../connection/target.ts';
import { detailOf } from '../../connection/target-failure.ts';
import { parseMessage, type RpcMessage, TARGET_BOUNDS } from '../../protocol/message.ts';
import { resultMessage } from '../../protocol/protocol.ts';

/** How spare children of one target are started. */
interface Starter {
  readonly name: string;
  readonly log: Log;
  readonly limits: Limits;
  readonly slots: ChildSlots;
  /** Starts a child, for which a slot was taken. */
  start(events: ChannelEvents): Promise<Channel>;
}

/**
 * Children of one stdio target that are started before a session needs them (`stdio.warm`). Each is given to one session,
 * which initializes it, and is then replaced. They take a slot only if no session waits for one, and are stopped before any
 * session is evicted. One that exits is replaced after a back-off of up to `LIMITS.warmRetryMax`.
 */
export class WarmChildren {
  readonly #count: number;
  readonly #starter: Starter;
  /** Oldest first. */
  readonly #spares = new Set<Spare>();
  #removeEvictable: (() => void) | undefined;
  #retry: NodeJS.Timeout | undefined;
  #wait: number;

  constructor(count: number, starter: Starter) {
    this.#count = count;
    this.#starter = starter;
    this.#wait = starter.limits.retryDelayMin;
  }

  /** Starts or stops the children: false once no new session will need them. */
  standBy(isActive: boolean): void {
    if (!isActive) {
      void this.close();
      return;
    }
    this.#removeEvictable ??= this.#starter.slots.addSource(() => {
      const [spare] = this.#spares;
      return spare && { idleFrom: Number.NEGATIVE_INFINITY, evict: () => this.#stop(spare) };
    });
    this.fill();
  }

  /** Gives away the oldest child, whose messages go to `events` from now on. Undefined if there is none. */
  take(events: ChannelEvents): Promise<Channel> | undefined {
    const [spare] = this.#spares;
    if (spare === undefined) return undefined;
    this.#spares.delete(spare);
    this.#wait = this.#starter.limits.retryDelayMin;
    this.fill();
    return spare.giveTo(events);
  }

  /** Starts missing children in free slots. Called whenever a slot may have become free. */
  fill(): void {
    const { slots } = this.#starter;
    while (this.#isActive && this.#retry === undefined && this.#spares.size < this.#count && slots.takeFree())
      this.#start();
  }

  /** Stops all children. Resolves when they have exited. */
  async close(): Promise<void> {
    this.#removeEvictable?.();
    this.#removeEvictable = undefined;
    clearTimeout(this.#retry);
    this.#retry = undefined;
    await Promise.all([...this.#spares].map((spare) => this.#stop(spare)));
  }

  get #isActive(): boolean {
    return this.#removeEvictable !== undefined;
  }

  #start(): void {
    const spare = new Spare(
      (events) => this.#starter.start(events),
      (error) => this.#ended(spare, error),
    );
    this.#spares.add(spare);
  }

  async #stop(spare: Spare): Promise<void> {
    this.#spares.delete(spare);
    const channel = await spare.opened.catch(() => undefined);
    await channel?.close();
  }

  #ended(spare: Spare, error: unknown): void {
    if (!this.#spares.delete(spare)) return;
    const { log, name, limits } = this.#starter;
    log.warn('mcp::stdio', 'a process that was started in advance has ended', {
      target: name,
      problem: detailOf(error),
      'retry.ms': this.#wait,
    });
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      this.fill();
    }, this.#wait).unref();
    this.#wait = Math.min(this.#wait * 2, limits.warmRetryMax);
  }
}

/** A child without a session. It gets answers to its pings; its requests wait for a session, and other messages are dropped. */
class Spare {
  #owner: ChannelEvents | undefined;
  readonly opened: Promise<Channel>;
  #channel: Channel | undefined;
  /** Requests of the child, at most `LIMITS.queuedMessages`. */
  #requests: string[] = [];

  constructor(start: (events: ChannelEvents) => Promise<Channel>, ended: (error: unknown) => void) {
    this.opened = start({
      message: (text, inReplyTo) => this.#receive(text, inReplyTo),
      invalid: (text, problem, id) => this.#owner?.invalid(text, problem, id),
      failed: (id, error) => this.#owner?.failed(id, error),
      awaits: (id) => this.#owner?.awaits(id) === true,
      onlyRequest: () => this.#owner?.onlyRequest?.(),
      suspended: (id) => this.#owner?.suspended(id),
      sessionLost: () => this.#owner?.sessionLost(),
      closed: (error) => {
        if (this.#owner === undefined) ended(error);
        else this.#owner.closed(error);
      },
    });
    this.opened.then(
      (channel) => {
        this.#channel = channel;
      },
      (error: unknown) => ended(error),
    );
  }

  /** Gives the child to a session, whose `events` get its messages from now on. */
  async giveTo(events: ChannelEvents): Promise<Channel> {
    this.#owner = events;
    const channel = await this.opened;
    // After the session has set the channel on which it answers.
    setImmediate(() => {
      for (const text of this.#requests.splice(0)) events.message(text);
    });
    return channel;
  }

  #receive(text: string, inReplyTo: number | undefined): void {
    if (this.#owner !== undefined) {
      this.#owner.message(text, inReplyTo);
      return;
    }
    const request = requestIn(text);
    if (request?.method === 'ping') this.#channel?.send(resultMessage(request.id ?? 'null', '{}'), {});
    else if (request !== undefined && this.#requests.length < LIMITS.queuedMessages)
      this.#requests.push(text);
  }
}

function requestIn(text: string): RpcMessage | undefined {
  try {
    const message = parseMessage(text, TARGET_BOUNDS);
    return message.kind === 'request' ? message : undefined;
  } catch {
    return undefined;
  }
}
