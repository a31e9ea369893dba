import { AppError, ERRORS } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import { counted } from '../../core/render/counted.ts';
import { cutShort } from '../kernel/pipeline.ts';
import type { RequestContext } from '../kernel/request-context.ts';
import { writeReply } from '../transport/write-reply.ts';

/** Requests whose response has not ended, and who waits for the end of those that are open now. */
export class OpenRequests {
  readonly #all = new Set<RequestContext>();
  readonly #waiting = new Set<{ readonly open: Set<RequestContext>; readonly done: () => void }>();

  get all(): ReadonlySet<RequestContext> {
    return this.#all;
  }

  began(x: RequestContext): void {
    this.#all.add(x);
  }

  ended(x: RequestContext): void {
    this.#all.delete(x);
    if (this.#waiting.size === 0) return;
    for (const { open, done } of this.#waiting) if (open.delete(x) && open.size === 0) done();
  }

  /**
   * Says of the requests that are open on these ports that they are cut. Those that can still answer do so, with an
   * error. Whether there was one.
   */
  cut(ports: ReadonlySet<number>, log: Log): boolean {
    const open = [...this.#all].filter(({ request }) => ports.has(request.socket.localPort ?? 0));
    if (open.length === 0) return false;
    log.warn(
      'proxy::gateway',
      `${counted(open.length, 'request')} ${open.length === 1 ? 'was' : 'were'} cut at the deadline`,
    );
    return open.filter(saysLast).length > 0;
  }

  /** Resolves when every request that is open now has ended, at the latest after so many ms. */
  afterAll(deadline: number): Promise<void> {
    if (this.#all.size === 0) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(() => done(), deadline);
    const waiter = { open: new Set(this.#all), done: () => done() };
    const done = (): void => {
      clearTimeout(timer);
      this.#waiting.delete(waiter);
      resolve();
    };
    this.#waiting.add(waiter);
    return promise;
  }
}

/**
 * Tells the client of an open request that its time is over. Whether that was possible: a body of which a part has left
 * has no place for it, unless it is a stream of events.
 */
function saysLast(x: RequestContext): boolean {
  const { request, response, running } = x;
  if (running?.expired?.() === true) return true;
  if (response.destroyed) return false;
  if (response.headersSent) {
    const body = x.reply?.body;
    if (typeof body === 'object' && 'attach' in body && body.expired?.() === true) return true;
    // The log says it, at least.
    const { text, reason } = ERRORS.gateway_closing;
    x.error ??= text;
    x.reason = reason;
    x.abandon('the gateway is closing');
    return false;
  }
  const reply = cutShort(x, new AppError('gateway_closing'));
  reply.headers.set('connection', 'close');
  writeReply(request, response, reply);
  x.abandon('the gateway is closing');
  return true;
}
