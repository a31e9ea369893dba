import { isRecord, membersOf, textIn } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import { durationOf, type FinishedRequest, fieldText } from '../../../core/requests/finished.ts';
import { sourceOf } from '../../../core/trace/request-line.ts';
import { lastMoment } from '../../../core/trace/verdict.ts';
import { addEvent, EMPTY_TRACE, type TraceModel } from '../../../core/trace-model.ts';
import type { AdminAddress } from '../../proxy/address.ts';
import { open } from '../../proxy/admin-client.ts';
import { receivedJson } from '../../proxy/answered.ts';
import { traceItems } from '../../proxy/trace-lines.ts';

/** A complete trace of a request. */
export interface RecordedTrace {
  readonly model: TraceModel;
  /** Its events as they were sent. */
  readonly texts: readonly string[];
  /** When its last event arrived, in ms since 1970 by the clock of this machine. */
  readonly at: number;
}

interface Running {
  model: TraceModel;
  texts: string[];
  length: number;
}

/** Traces of all requests while recording is on: the newest ones, limited in number and size. */
export class RecordedTraces {
  readonly #running = new Map<string, Running>();
  readonly #kept: (RecordedTrace & { readonly length: number })[] = [];
  #length = 0;

  get count(): number {
    return this.#kept.length;
  }

  /**
   * Records until `signal` is aborted or the stream ends.
   *
   * @param started Called when the gateway has answered: it traces every request from then on.
   * @throws CommandError
   */
  async record(address: AdminAddress, signal: AbortSignal, started: () => void): Promise<void> {
    this.#running.clear();
    const response = await open(address, { method: 'POST', path: '/debug/trace?follow=true', signal });
    response.socket.setTimeout(0);
    started();
    for await (const item of traceItems(response)) {
      if ('json' in item) this.#event(item.json);
      else this.#sign(item.sign);
    }
  }

  /**
   * The trace of a finished request. Both name the client's address, which serves one request at a time in HTTP/1.1, and
   * the path and duration tell requests of one HTTP/2 connection apart.
   */
  of({ fields }: FinishedRequest): RecordedTrace | undefined {
    const took = durationOf(fields);
    if (took === undefined) return undefined;
    const candidates = this.#kept.filter(({ model: { state } }) => {
      const request = isRecord(state?.['request']) ? state['request'] : {};
      return (
        sourceOf(state) === fieldText(fields, 'src.addr') &&
        request['method'] === fields['http.method'] &&
        fieldText(fields, 'http.path').split('?')[0] === request['path']
      );
    });
    const distance = ({ model }: RecordedTrace): number => Math.abs(lastMoment(model) / 1000 - took);
    const [nearest] = candidates.sort((a, b) => distance(a) - distance(b));
    return nearest !== undefined && distance(nearest) <= Math.max(TOLERANCE, took / 2) ? nearest : undefined;
  }

  #event(text: string): void {
    const json = receivedJson(text);
    const id = textIn(membersOf(json)['requestId']);
    const running = this.#running.get(id) ?? { model: EMPTY_TRACE, texts: [], length: 0 };
    this.#running.set(id, running);
    running.length += text.length;
    // A trace that is too long stays incomplete.
    if (running.texts.length >= LIMITS.traceEvents || running.length > LIMITS.topTraceLength) return;
    running.texts.push(text);
    running.model = addEvent(running.model, json);
  }

  #sign(text: string): void {
    const id = /^end (.+)$/.exec(text)?.[1];
    const running = id === undefined ? undefined : this.#running.get(id);
    if (id === undefined || running === undefined) return;
    this.#running.delete(id);
    this.#kept.push({ ...running, at: Date.now() });
    this.#length += running.length;
    while (
      this.#kept.length > LIMITS.traceKeptRequests ||
      (this.#length > LIMITS.topTraceLength && this.#kept.length > 1)
    )
      this.#length -= this.#kept.shift()?.length ?? 0;
  }
}

/**
 * Largest difference between the durations in the trace and in the log, in ms, of a request that takes up to twice as long. The last
 * event of a trace comes before the response has ended: a busy machine takes more than 5 ms in between, and half of a longer request.
 */
const TOLERANCE = 50;
