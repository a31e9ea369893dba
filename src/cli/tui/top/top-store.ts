import { messageOf } from '../../../core/errors.ts';
import { CommandError } from '../../../core/exit-codes.ts';
import { LIMITS } from '../../../core/limits.ts';
import { escapeControls } from '../../../core/render/width.ts';
import type { AdminAddress } from '../../proxy/address.ts';
import { ask } from '../../proxy/admin-client.ts';
import { receivedJson } from '../../proxy/answered.ts';
import { type FedRequest, followRequests, keptRequests } from '../../proxy/request-feed.ts';
import { type GatewayState, gatewayStateIn, type OpenRequests, openRequestsIn } from './gateway-state.ts';
import { RecordedTraces } from './recorded-traces.ts';

/** The data that the screen displays; a new object for every change. */
export interface TopView extends OpenRequests {
  readonly phase: 'connecting' | 'live' | 'lost';
  /** Address, safe to print. */
  readonly source: string;
  /** Why the gateway is gone, safe to print. */
  readonly problem: string;
  /** Oldest first. */
  readonly requests: readonly FedRequest[];
  readonly gateway: GatewayState | undefined;
  /** The clock of this machine minus the gateway's, in ms. */
  readonly skew: number;
  /** From when on every request is known, in ms since 1970 by the gateway's clock. */
  readonly completeSince: number;
  readonly isRecording: boolean;
  /** Number of recorded traces. */
  readonly recorded: number;
  /** One line for the user. */
  readonly note: string;
}

/** Clocks that differ by less are taken as equal: the gateway gives its time in seconds. */
const SKEW = 2_000;

/** Follows a gateway and keeps the data for the screen. Never throws: errors are displayed. */
export class TopStore {
  readonly traces = new RecordedTraces();
  readonly address: AdminAddress;
  readonly #listeners = new Set<() => void>();
  readonly #stop = new AbortController();
  #view: TopView;
  /** Arrived since the last update of the display. */
  #waiting: FedRequest[] = [];
  #length = 0;
  #timer: NodeJS.Timeout | undefined;
  #poll: NodeJS.Timeout | undefined;
  #recording: AbortController | undefined;
  /** The error if the gateway never answered; the command ends with it. */
  firstFailure: CommandError | undefined;

  constructor(address: AdminAddress) {
    this.address = address;
    this.#view = {
      phase: 'connecting',
      source: address.shown,
      problem: '',
      requests: [],
      open: [],
      openCount: 0,
      gateway: undefined,
      skew: 0,
      completeSince: 0,
      isRecording: false,
      recorded: 0,
      note: '',
    };
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  readonly view = (): TopView => this.#view;

  /** Resolves when the gateway answers for the first time, or cannot be reached (`firstFailure`). */
  async start(): Promise<void> {
    let kept: FedRequest[];
    try {
      kept = await keptRequests(this.address);
    } catch (error) {
      this.#failed(error);
      return;
    }
    this.#add(kept);
    await this.#follow(kept.at(-1));
  }

  #failed(error: unknown): void {
    this.firstFailure = error instanceof CommandError ? error : new CommandError('bug', String(error));
  }

  #follow(last: FedRequest | undefined): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const followed = followRequests(
      this.address,
      {
        request: (request) => this.#take(request),
        connected: () => {
          this.#set({ phase: 'live', problem: '' });
          void this.#ask().then(resolve);
        },
        lost: ({ message }) =>
          this.#set({ phase: 'lost', problem: escapeControls(message), open: [], openCount: 0 }),
      },
      this.#stop.signal,
      last,
    );
    followed.catch((error: unknown) => {
      this.#failed(error);
      resolve();
    });
    return promise;
  }

  stop(): void {
    this.#stop.abort();
    this.#recording?.abort();
    clearTimeout(this.#timer);
    clearTimeout(this.#poll);
  }

  note(note: string): void {
    this.#set({ note: escapeControls(note) });
  }

  /** Starts or stops recording a trace of every request. */
  toggleRecording(): void {
    if (this.#recording !== undefined) {
      this.#recording.abort();
      return;
    }
    const recording = new AbortController();
    this.#recording = recording;
    const started = (): void =>
      this.#set({ isRecording: true, note: 'recording a trace of every request; r stops' });
    void this.traces
      .record(this.address, recording.signal, started)
      .then(
        () => 'recording has ended: the gateway closed the stream',
        (error: unknown) =>
          recording.signal.aborted ? 'recording has stopped' : `recording has ended: ${messageOf(error)}`,
      )
      .then((note) => {
        this.#recording = undefined;
        this.#set({ isRecording: false, note: escapeControls(note) });
      });
  }

  #take(request: FedRequest): void {
    this.#waiting.push(request);
    this.#timer ??= setTimeout(() => this.#flush(), LIMITS.topDrawInterval);
  }

  #flush(): void {
    this.#timer = undefined;
    const added = this.#waiting;
    this.#waiting = [];
    this.#add(added);
  }

  #add(added: readonly FedRequest[]): void {
    const requests = [...this.#view.requests, ...added];
    for (const { text } of added) this.#length += text.length;
    let dropped = 0;
    while (
      dropped < requests.length &&
      (requests.length - dropped > LIMITS.topRequests || this.#length > LIMITS.topRequestLength)
    ) {
      this.#length -= requests[dropped]?.text.length ?? 0;
      dropped += 1;
    }
    this.#set({ requests: requests.slice(dropped), recorded: this.traces.count });
  }

  /** Asks for requests in flight and for the state of backends, now and every second. */
  async #ask(): Promise<void> {
    clearTimeout(this.#poll);
    try {
      const [open, overview] = await Promise.all([
        this.#json('/api/requests/open'),
        this.#json('/api/overview'),
      ]);
      const gateway = gatewayStateIn(overview);
      this.#set({
        ...openRequestsIn(open),
        ...(gateway === undefined ? {} : stateView(gateway, this.#view.requests)),
      });
    } catch {
      // The feed reports a gateway that is gone.
    }
    if (this.#stop.signal.aborted) return;
    clearTimeout(this.#poll);
    this.#poll = setTimeout(() => void this.#ask(), LIMITS.topPollInterval);
  }

  async #json(path: string): Promise<unknown> {
    const { body } = await ask(this.address, { method: 'GET', path, signal: this.#stop.signal });
    return receivedJson(body.toString('utf8'));
  }

  #set(change: Partial<TopView>): void {
    this.#view = { ...this.#view, ...change };
    for (const listener of this.#listeners) listener();
  }
}

function stateView(
  gateway: GatewayState,
  requests: readonly FedRequest[],
): Pick<TopView, 'gateway' | 'skew' | 'completeSince'> {
  const { startedAt, uptimeSeconds } = gateway;
  const skew = Date.now() - (startedAt + uptimeSeconds * 1000);
  const [oldest] = requests;
  // The gateway keeps the last requests only: earlier ones are known if the first of all is still there.
  const isComplete = oldest === undefined || oldest.id === 1;
  return {
    gateway,
    skew: Math.abs(skew) < SKEW ? 0 : skew,
    completeSince: isComplete ? Math.min(startedAt, oldest?.at ?? startedAt) : oldest.at,
  };
}
