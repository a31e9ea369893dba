import { setTimeout as wait } from 'node:timers/promises';
import { CommandError } from '../../core/exit-codes.ts';
import { membersOf } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { type FinishedRequest, readFinished } from '../../core/requests/finished.ts';
import type { AdminAddress } from './address.ts';
import { ask, notAnAdmin, open, unreachable } from './admin-client.ts';
import { receivedJson } from './answered.ts';
import { traceItems } from './trace-lines.ts';

/** A finished request, and the JSON that the gateway sent. */
export interface FedRequest extends FinishedRequest {
  readonly text: string;
}

/** Receives the requests of a gateway. */
export interface FeedListener {
  /** Each request once, in the order in which the gateway lists them. */
  request(request: FedRequest): void;
  /** The gateway answers: at first, and again after `lost`. Its kept requests follow. */
  connected(): void;
  /** The connection broke; the feed tries to restore it. */
  lost(error: CommandError): void;
}

/**
 * The requests that the gateway has kept, oldest first.
 *
 * @throws CommandError
 */
export async function keptRequests(address: AdminAddress): Promise<FedRequest[]> {
  const { body } = await ask(address, { method: 'GET', path: '/api/requests' });
  const { requests } = membersOf(receivedJson(body.toString('utf8')));
  if (!Array.isArray(requests)) throw notAnAdmin(address.shown, 'its /api/requests is not a list');
  return requests.flatMap((json) => {
    const request = readFinished(json);
    return request === undefined ? [] : [{ ...request, text: JSON.stringify(json) }];
  });
}

/**
 * Passes on the requests that the gateway has kept, and every further one until `signal` is aborted. If the gateway goes
 * away, waits until it is back.
 *
 * @param last the newest request of `keptRequests`; it and older ones are not passed on
 * @throws CommandError if the first connection fails
 */
export async function followRequests(
  address: AdminAddress,
  listener: FeedListener,
  signal: AbortSignal,
  last?: FinishedRequest,
): Promise<void> {
  const seen = new SeenRequests(last);
  for (let connections = 0; !signal.aborted; ) {
    try {
      const path = '/api/requests';
      const response = await open(address, { method: 'GET', path, accept: 'text/event-stream', signal });
      if (!(response.headers['content-type'] ?? '').includes('text/event-stream')) {
        response.destroy();
        throw notAnAdmin(address.shown, `its ${path} is not an event stream`);
      }
      // From here on, silence means that there are no requests.
      response.socket.setTimeout(0);
      connections += 1;
      listener.connected();
      for await (const item of traceItems(response)) {
        const request = 'json' in item ? parse(item.json) : undefined;
        if (request !== undefined && seen.add(request)) listener.request(request);
      }
      throw unreachable(address, new Error('aborted'), 'closed the connection');
    } catch (error) {
      if (signal.aborted) return;
      const known =
        error instanceof CommandError ? error : unreachable(address, error, 'closed the connection');
      if (connections === 0) throw known;
      listener.lost(known);
    }
    await wait(LIMITS.adminReconnect, undefined, { signal }).catch(() => undefined);
  }
}

function parse(text: string): FedRequest | undefined {
  const request = readFinished(receivedJson(text));
  return request === undefined ? undefined : { ...request, text };
}

/**
 * Each connection begins with the requests that the gateway has kept. Ids start again when it restarts, so a request is
 * known only if neither its id nor its time is new.
 */
class SeenRequests {
  #id: number;
  #at: number;

  constructor({ id, at }: Pick<FinishedRequest, 'id' | 'at'> = { id: 0, at: 0 }) {
    this.#id = id;
    this.#at = at;
  }

  /** Returns whether the request is new. */
  add({ id, at }: FinishedRequest): boolean {
    if (id <= this.#id && at <= this.#at) return false;
    this.#id = id;
    this.#at = Math.max(at, this.#at);
    return true;
  }
}
