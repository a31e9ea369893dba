import { messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import {
  type PolicyAction,
  severityOf,
  type TraceEvent,
  type TraceMessage,
  type TraceSeverity,
} from '../../../core/trace/event.ts';
import { Scrubber } from '../../../core/trace/redact.ts';
import type { Exchange } from '../../http/exchange.ts';
import { policyMessage, severityOfNote } from './policy-notes.ts';

/** Where the events of one request go. */
export interface TraceOutlet {
  readonly requestId?: string;
  event(event: TraceEvent): void;
  /** No more events come of this request. */
  ended(): void;
}

/** What a policy tells of what it did. */
export interface PolicyNote {
  /** Key of the policy in the configuration. */
  readonly kind: string;
  readonly action: PolicyAction;
  /** Why, in words: the rule that decided, the header that was missing. */
  readonly reason: string;
  /** Values that the decision rests on. Never holds credentials. */
  readonly snapshot?: Readonly<Record<string, unknown>>;
  readonly severity?: TraceSeverity;
  /** When it began, from `Tracer.now`, for what took time. */
  readonly since?: number;
}

export interface EmitOptions {
  readonly severity?: TraceSeverity | undefined;
  /** From `Tracer.now`. */
  readonly since?: number | undefined;
  readonly scope?: string | undefined;
}

/**
 * Tells one watcher about one request, in the order of things. An exchange has one only while somebody watches it,
 * so that stages pay a look at `undefined` otherwise. Everything that leaves here is free of known credentials.
 */
export class Tracer {
  readonly #outlet: TraceOutlet;
  readonly #begin = performance.now();
  readonly #scrubber = new Scrubber();
  #isOpen = true;

  constructor(outlet: TraceOutlet) {
    this.#outlet = outlet;
  }

  /** Whole µs since the trace began. */
  get now(): number {
    return Math.max(0, Math.round((performance.now() - this.#begin) * 1000));
  }

  /** Keeps a secret out of everything that follows. */
  hide(secret: string | undefined): void {
    if (secret !== undefined) this.#scrubber.add(secret);
  }

  emit(message: TraceMessage, { severity, since, scope }: EmitOptions = {}): void {
    if (!this.#isOpen) return;
    this.#outlet.event({
      eventStart: since ?? null,
      eventEnd: this.now,
      severity: severity ?? severityOf(message),
      ...(scope === undefined ? {} : { scope: [scope] }),
      ...(this.#outlet.requestId === undefined ? {} : { requestId: this.#outlet.requestId }),
      message: this.#clean(message) as TraceMessage,
    });
  }

  /** A policy was considered. */
  policy(note: PolicyNote): void {
    this.emit(policyMessage(note, undefined), { severity: severityOfNote(note), since: note.since });
  }

  /** A body as far as it is kept; `truncated` when there was more. */
  body(stage: string, bytes: Uint8Array, truncated: boolean, scope?: string): void {
    const kept = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, LIMITS.traceBodyBytes));
    const clean = Buffer.from(this.#scrubber.text(kept.toString('latin1')), 'latin1');
    const isCut = truncated || kept.length < bytes.length;
    this.emit(
      {
        type: 'bodySnapshot',
        stage,
        body: clean.toString('base64'),
        ...(isCut ? { truncated: true } : {}),
      },
      { scope },
    );
  }

  /** Tells of a call for the request, at its begin and its end. Gives what the call gives. */
  async call<T extends { readonly status: number } | { readonly statusCode: number }>(
    target: string,
    sent: Promise<T>,
    scope?: string,
  ): Promise<T> {
    const since = this.callStarted(target, scope);
    try {
      const response = await sent;
      this.callEnded(target, since, 'status' in response ? response.status : response.statusCode, scope);
      return response;
    } catch (error) {
      this.callFailed(target, since, error, scope);
      throw error;
    }
  }

  callStarted(target: string, scope?: string): number {
    const since = this.now;
    this.emit({ type: 'backendCallStart', target }, { scope });
    return since;
  }

  callEnded(target: string, since: number, status: number | null, scope?: string): void {
    this.emit({ type: 'backendCallResult', status, error: null, target }, { since, scope });
  }

  callFailed(target: string, since: number, error: unknown, scope?: string): void {
    this.emit({ type: 'backendCallResult', status: null, error: messageOf(error), target }, { since, scope });
  }

  /** The response has ended; the access log is still to come. */
  finished({ error, errorDetail }: Exchange, status: number): void {
    this.emit({
      type: 'requestFinished',
      status: status === 0 ? null : status,
      error: error ?? null,
      ...(errorDetail === undefined ? {} : { detail: errorDetail }),
    });
  }

  /** The last one: nothing is said of the request any more. */
  end(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#outlet.ended();
  }

  #clean(value: unknown): unknown {
    if (typeof value === 'string') return this.#scrubber.text(value);
    if (Array.isArray(value)) return value.map((item) => this.#clean(item));
    if (typeof value !== 'object' || value === null) return value;
    const clean: Record<string, unknown> = {};
    // Types and stages are ours; a credential that happens to be one of them must not make an event unreadable.
    for (const [key, item] of Object.entries(value))
      clean[key] = key === 'type' || key === 'stage' || key === 'kind' ? item : this.#clean(item);
    return clean;
  }
}
