import { isSensitiveName } from '../../../core/credentials.ts';
import { messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import { mcpProblem } from '../../../core/outcome.ts';
import type { Redactor } from '../../../core/redact.ts';
import {
  severityOf,
  type TraceEvent,
  type TraceMessage,
  type TraceMessageType,
  type TracePlace,
} from '../../../core/trace/event.ts';
import { Scrubber } from '../../../core/trace/redact.ts';
import type { SecretNames } from '../../kernel/compile-context.ts';
import type { TracedExpression } from '../../kernel/expression.ts';
import type { CelOutcome, Decision, EventOptions, PolicyNote } from '../../kernel/observer.ts';
import type { Policy, Reply, RequestContext } from '../../kernel/request-context.ts';
import { mcpFields } from '../../mcp/request-fields.ts';
import { BodyTap, tapResponse } from './body-tap.ts';
import { celMessage } from './cel-events.ts';
import { cleaned } from './cleaned.ts';
import { authorizationMessage, policyMessage, severityOfNote } from './policy-notes.ts';
import { type FinalRequest, stateOf } from './state.ts';

/** Where the events of one request go. */
export interface TraceOutlet {
  readonly requestId?: string;
  /** The types that it wants, for decisions alone; all of them when absent. */
  readonly only?: ReadonlySet<TraceMessageType>;
  event(event: TraceEvent): void;
  /** No more events come of this request. */
  ended(): void;
}

/** What a trace must know of the configuration. */
export interface TraceSettings {
  readonly names: SecretNames;
  /** Knows the configuration's own secrets. */
  readonly redactor: Redactor;
}

/**
 * Tells one watcher about one request, in the order of things. An exchange has one only while somebody watches it,
 * so that stages pay a look at `undefined` otherwise. Everything that leaves here is free of known credentials.
 */
export class Tracer {
  protected readonly context: RequestContext;
  readonly #outlet: TraceOutlet;
  readonly #begin = performance.now();
  readonly #scrubber = new Scrubber();
  #names: SecretNames = { headers: new Set(), parameters: new Set() };
  #policies = new Map<string, Policy>();
  #response: BodyTap | undefined;
  /** What a provider answers, before it is guarded or counted. */
  #raw: BodyTap | undefined;
  /** What the backend will get, shown once the call begins. */
  #upload: BodyTap | undefined;
  /** A policy did something since the last snapshot. */
  #acted = false;
  #isOpen = true;

  constructor(ctx: RequestContext, outlet: TraceOutlet) {
    this.context = ctx;
    this.#outlet = outlet;
  }

  /** Snapshots, bodies and the values of expressions are wanted by nobody: they need not be built. */
  get isBrief(): boolean {
    return this.#outlet.only !== undefined;
  }

  /** The request has come in. Nothing before this may show any of it. */
  begin({ names, redactor }: TraceSettings): void {
    this.#names = { ...names, scrub: (text) => this.#scrubber.text(text) };
    this.#scrubber.redactor = redactor;
    this.#hideHeaders(this.context.headers.raw);
    const query = this.context.request.url?.split('?')[1] ?? '';
    for (const [name, value] of new URLSearchParams(query))
      if (isSensitiveName(name, names.parameters)) this.hide(value);
    if (!this.isBrief) this.#response = tapResponse(this.context.response);
    this.emit({ type: 'requestStarted' });
    this.requestSnapshot('initial request');
  }

  /** The policies of the chosen route: their names in events, and where they are in the configuration. */
  knowPolicies(policies: readonly Policy[]): void {
    this.#policies = new Map(policies.map((policy) => [policy.key, policy]));
  }

  /** Whole µs since the trace began. */
  get now(): number {
    return Math.max(0, Math.round((performance.now() - this.#begin) * 1000));
  }

  /** Keeps a secret out of everything that follows. `always`: one of the configuration, not of the client. */
  hide(secret: string | undefined, always = false): void {
    if (secret !== undefined) this.#scrubber.add(secret, always);
  }

  emit(message: TraceMessage, { severity, since, scope }: EventOptions = {}): void {
    const { only } = this.#outlet;
    if (!this.#isOpen || only?.has(message.type) === false) return;
    this.#outlet.event({
      eventStart: since ?? null,
      eventEnd: this.now,
      severity: severity ?? severityOf(message),
      ...(scope === undefined ? {} : { scope: [scope] }),
      ...(this.#outlet.requestId === undefined ? {} : { requestId: this.#outlet.requestId }),
      message: cleaned(message, this.#scrubber) as TraceMessage,
    });
  }

  requestSnapshot(stage: string, final?: FinalRequest): void {
    // What the configuration adds for a backend may come back from it.
    if (final !== undefined) this.#hideHeaders(final.headers);
    this.#tell(() => ({
      type: 'requestSnapshot',
      stage,
      requestState: stateOf(this.context, this.#names, { final }),
    }));
  }

  responseSnapshot(stage: string, reply: Reply): void {
    this.#tell(() => ({
      type: 'responseSnapshot',
      stage,
      requestState: stateOf(this.context, this.#names, { reply }),
    }));
  }

  /** A policy was considered. */
  policy(note: PolicyNote): void {
    if (note.action !== 'skip') this.#acted = true;
    this.emit(policyMessage(note, this.#policies.get(note.kind)), {
      severity: severityOfNote(note),
      since: note.since,
    });
  }

  /** Rules were asked, about the request or about one item of an MCP server. */
  authorization(
    policy: string,
    decision: Decision,
    item?: { readonly kind: string; readonly target: string; readonly name: string },
  ): void {
    this.#acted = true;
    this.emit(authorizationMessage(policy, decision, this.#policies.get(policy)?.origin?.place, item));
  }

  /** A policy is done with the request: how it left it, if it did anything. */
  policyDone({ key, trace }: Policy): void {
    if (!this.#acted) return;
    this.#acted = false;
    this.requestSnapshot(trace?.stage ?? key);
  }

  /** What a guardrail said of a request or a response. */
  guardrail(phase: string, verdict: keyof typeof VERDICTS, place: TracePlace, problem?: string): void {
    this.emit(
      {
        type: 'policyEvent',
        kind: 'guardrail',
        details: { phase, verdict, ...(problem === undefined ? {} : { problem }) },
        ...place,
      },
      { severity: VERDICTS[verdict] },
    );
  }

  expression(
    expression: TracedExpression,
    since: number,
    peek: (root: string) => unknown,
    outcome: CelOutcome,
  ): void {
    this.#tell(() => celMessage(expression, peek, outcome, this.context, this.#names), { since });
  }

  /** A body as far as it is kept; `truncated` when there was more. */
  body(stage: string, bytes: Uint8Array, truncated = false): void {
    if (this.isBrief) return;
    const kept = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, LIMITS.traceBodyBytes));
    const clean = Buffer.from(this.#scrubber.text(kept.toString('latin1')), 'latin1');
    this.emit({
      type: 'bodySnapshot',
      stage,
      body: clean.toString('base64'),
      ...(truncated || kept.length < bytes.length ? { truncated: true } : {}),
    });
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
    if (scope === undefined && this.#upload !== undefined) {
      this.body('final request', this.#upload.bytes, this.#upload.truncated);
      this.#upload = undefined;
    }
    return since;
  }

  /** The body of the call to the backend is known: at once when it is whole, else when all of it has been sent. */
  uploaded(tap: BodyTap, isStream: boolean): void {
    if (tap.isEmpty) return;
    if (isStream) this.body('final request', tap.bytes, tap.truncated);
    else this.#upload = tap;
  }

  /** `problem`: what the answer says went wrong, whatever its status. */
  callEnded(target: string, since: number, status: number | null, scope?: string, problem?: string): void {
    this.emit({ type: 'backendCallResult', status, error: problem ?? null, target }, { since, scope });
  }

  callFailed(target: string, since: number, error: unknown, scope?: string): void {
    this.emit({ type: 'backendCallResult', status: null, error: messageOf(error), target }, { since, scope });
  }

  /** Takes in what a provider answers; shown when all of it is here. */
  rawResponse(): BodyTap {
    this.#raw = new BodyTap();
    return this.#raw;
  }

  /** The response has ended; the access log is still to come. */
  finished(status: number): void {
    const raw = this.#raw;
    if (raw !== undefined && !raw.isEmpty) this.body('llm raw response', raw.bytes, raw.truncated);
    const tap = this.#response;
    if (tap !== undefined && !tap.isEmpty) this.body('response', tap.bytes, tap.truncated);
    const { error } = this.context;
    const mcp = mcpFields.get(this.context);
    const errorDetail = this.context.errorDetail ?? mcp?.errorDetail;
    this.emit({
      type: 'requestFinished',
      status: status === 0 ? null : status,
      error: error ?? mcpProblem(mcp) ?? null,
      ...(errorDetail === undefined ? {} : { detail: errorDetail }),
    });
  }

  /** Nothing is said of the request any more. */
  end(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#outlet.ended();
  }

  /** A step that cannot be shown must not fail the request that took it. */
  #tell(build: () => TraceMessage, options?: EventOptions): void {
    if (this.isBrief) return;
    let message: TraceMessage;
    try {
      message = build();
    } catch {
      message = { type: 'message', message: 'this step could not be shown' };
    }
    this.emit(message, options);
  }

  #hideHeaders(raw: readonly string[]): void {
    for (let i = 0; i < raw.length; i += 2) {
      if (!isSensitiveName(raw[i] as string, this.#names.headers)) continue;
      const value = raw[i + 1] as string;
      this.hide(value);
      // A cookie header holds several.
      for (const pair of value.split(';')) this.hide(pair.slice(pair.indexOf('=') + 1).trim());
    }
  }
}

const VERDICTS = { pass: 'info', mask: 'warn', reject: 'error', failed: 'error' } as const;
