import { randomBytes } from 'node:crypto';
import { LIMITS } from '../../core/limits.ts';
import type { Reply, RequestContext } from '../kernel/request-context.ts';

/** A call whose response stream a client may come back to. */
export interface ResumableCall {
  /** It has been answered; the client may have missed that. */
  readonly isOver: boolean;
  /** The client has not come back. */
  giveUp(): void;
  /** The client is back and has got the events up to `after`. Undefined when later ones are not kept any more. */
  resume(ctx: RequestContext, after: number): Reply | undefined;
}

/** Other processes, and this one after a restart, use other ids: an id of theirs leads to nothing here. */
const PROCESS = randomBytes(6).toString('base64url');
let streams = 0;

/** The calls of one session whose response streams can be resumed. */
export class ResumableCalls {
  readonly #calls = new Map<string, { readonly call: ResumableCall; timer: NodeJS.Timeout | undefined }>();

  /** An id for the stream of a call; undefined when too many others are in flight. */
  add(call: ResumableCall): string | undefined {
    if (this.#calls.size >= LIMITS.resumableStreams && !this.#forgetOldest()) return undefined;
    streams += 1;
    const id = `${PROCESS}-${streams}`;
    this.#calls.set(id, { call, timer: undefined });
    return id;
  }

  /** The client has left: it has `LIMITS.resumeWithin` to come back. */
  left(id: string): void {
    const entry = this.#calls.get(id);
    if (entry === undefined) return;
    clearTimeout(entry.timer);
    entry.timer = setTimeout(() => {
      this.#calls.delete(id);
      entry.call.giveUp();
    }, LIMITS.resumeWithin).unref();
  }

  /** The call that an event id belongs to, and the number of the event. Its client is back. */
  returned(eventId: string): { readonly call: ResumableCall; readonly after: number } | undefined {
    const [, id = '', after = ''] = /^([\w-]{1,64})\.(\d{1,15})$/.exec(eventId) ?? [];
    const entry = this.#calls.get(id);
    if (entry === undefined) return undefined;
    clearTimeout(entry.timer);
    return { call: entry.call, after: Number(after) };
  }

  /** Makes room by a call that was answered. Whether there was one. */
  #forgetOldest(): boolean {
    for (const [id, { call, timer }] of this.#calls) {
      if (!call.isOver) continue;
      clearTimeout(timer);
      return this.#calls.delete(id);
    }
    return false;
  }

  /** The session has ended: nobody comes back. */
  close(): void {
    for (const { timer } of this.#calls.values()) clearTimeout(timer);
    this.#calls.clear();
  }
}
