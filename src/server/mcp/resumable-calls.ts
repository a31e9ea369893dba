import { randomBytes } from 'node:crypto';
import type { Limits } from '../../core/limits.ts';
import type { Reply, RequestContext } from '../kernel/request-context.ts';

/** A call whose response stream can be resumed. */
export interface ResumableCall {
  /** The call has its response, which the client may have missed. */
  readonly isOver: boolean;
  /** Called when the client has not reconnected within `LIMITS.resumeTimeout`. */
  giveUp(): void;
  /** Resumes the stream after event number `after`. Undefined if later events were discarded. */
  resume(ctx: RequestContext, after: number): Reply | undefined;
}

/** Part of stream ids, so that ids of other processes, or from before a restart, are unknown here. */
const PROCESS = randomBytes(6).toString('base64url');
let streams = 0;

/** The calls of one session whose response streams can be resumed. */
export class ResumableCalls {
  readonly #calls = new Map<string, { readonly call: ResumableCall; timer: NodeJS.Timeout | undefined }>();

  readonly #limits: Limits;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** Assigns an id to the stream of a call. Undefined if `LIMITS.resumableStreams` calls without a response have one. */
  add(call: ResumableCall): string | undefined {
    if (this.#calls.size >= this.#limits.resumableStreams && !this.#removeOldest()) return undefined;
    streams += 1;
    const id = `${PROCESS}-${streams}`;
    this.#calls.set(id, { call, timer: undefined });
    return id;
  }

  /** The client has disconnected. After `LIMITS.resumeTimeout`, the call is given up. */
  disconnected(id: string): void {
    const entry = this.#calls.get(id);
    if (entry === undefined) return;
    clearTimeout(entry.timer);
    entry.timer = setTimeout(() => {
      this.#calls.delete(id);
      entry.call.giveUp();
    }, this.#limits.resumeTimeout).unref();
  }

  /** Returns the call of an event id and the number of the event, for a client that reconnected. Undefined if unknown. */
  reconnected(eventId: string): { readonly call: ResumableCall; readonly after: number } | undefined {
    const [, id = '', after = ''] = /^([\w-]{1,64})\.(\d{1,15})$/.exec(eventId) ?? [];
    const entry = this.#calls.get(id);
    if (entry === undefined) return undefined;
    clearTimeout(entry.timer);
    return { call: entry.call, after: Number(after) };
  }

  /** Removes the oldest call that has its response. Returns whether there was one. */
  #removeOldest(): boolean {
    for (const [id, { call, timer }] of this.#calls) {
      if (!call.isOver) continue;
      clearTimeout(timer);
      return this.#calls.delete(id);
    }
    return false;
  }

  /** Forgets all calls, at the end of the session. */
  close(): void {
    for (const { timer } of this.#calls.values()) clearTimeout(timer);
    this.#calls.clear();
  }
}
