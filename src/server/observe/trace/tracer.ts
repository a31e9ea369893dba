import { isSensitiveName, withSignInAnswer } from '../../../core/credentials.ts';
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
import type { SecretNames } from '../../kernel/compile-context.ts';
import type { TracedExpression } from '../../kernel/expression.ts';
import type { CelOutcome, Decision, EventOptions, PolicyNote } from '../../kernel/observer.ts';
import type { Policy, Reply, RequestContext } from '../../kernel/request/request-context.ts';
import type { Route } from '../../kernel/routing/route.ts';
import { mcpFields } from '../../mcp/request-fields.ts';
import { BodyTap, tapResponse } from './body-tap.ts';
import { authorizationMessage, celMessage, policyMessage, severityOfNote } from './messages.ts';
import { Scrubber } from './redact.ts';
import { type FinalRequest, snapshotState } from './request-state.ts';

/** Receives the events of one request. */
export interface TraceSink {
  readonly requestId?: string;
  /** Event types to deliver. Default: all, including snapshots and bodies. */
  readonly only?: ReadonlySet<TraceMessageType>;
  event(event: TraceEvent): void;
  /** Called after the last event. */
  ended(): void;
}

/** Settings of the active configuration that redaction needs. */
export interface TraceSettings {
  readonly names: SecretNames;
  /** Redacts secrets of the configuration. */
  readonly redactor: Redactor;
}

/**
 * Emits the events of one request to one sink, in order. A request context has a tracer only while it is traced, so
 * untraced requests only pay a check for `undefined`. Known credentials are redacted from every event.
 */
export class Tracer {
  protected readonly context: RequestContext;
  readonly #sink: TraceSink;
  readonly #begin = performance.now();
  readonly #scrubber = new Scrubber();
  #names: SecretNames = {
    headers: new Set(),
    parameters: new Set(),
    values: new Set(),
    guarded: new Set(),
  };
  readonly #policies = new Map<string, Policy>();
  #response: BodyTap | undefined;
  /** The provider's response, before guardrails. */
  #raw: BodyTap | undefined;
  /** The body for the backend, emitted when the call starts. */
  #upload: BodyTap | undefined;
  /** Whether a policy applied since the last snapshot. */
  #hasApplied = false;
  #isOpen = true;

  constructor(ctx: RequestContext, sink: TraceSink) {
    this.context = ctx;
    this.#sink = sink;
  }

  /** Whether the sink takes selected event types only. Snapshots, bodies and expression values are then not built. */
  get isBrief(): boolean {
    return this.#sink.only !== undefined;
  }

  /** Starts the trace. Must be called first: nothing may be emitted before the request's credentials are known. */
  begin({ names, redactor }: TraceSettings): void {
    const scrub = (text: string): string => this.#scrubber.text(text);
    this.#names = { ...names, scrub, omitsUnchecked: names.guarded.size > 0 };
    this.#scrubber.redactor = redactor;
    this.#hideHeaders(this.context.headers.raw);
    const query = this.context.request.url?.split('?')[1] ?? '';
    const parameters = new URLSearchParams(query);
    const secrets = withSignInAnswer([...parameters.keys()], names.parameters);
    for (const [name, value] of parameters) if (isSensitiveName(name, secrets)) this.hide(value);
    if (!this.isBrief) this.#response = tapResponse(this.context.response);
    this.emit({ type: 'requestStarted' });
    this.requestSnapshot('initial request');
  }

  /** The route is known: content is shown unless guardrails check that of its calls. */
  knowRoute({ api, policies, backends }: Route): void {
    const own = [...policies, ...backends.flatMap((backend) => backend.policies)];
    const omitsUnchecked =
      this.#names.guarded.has(api?.protocol ?? 'http') || own.some(({ trace }) => trace?.guardsContent);
    this.#names = { ...this.#names, omitsUnchecked };
  }

  /** Adds policies that are about to run, from which events take names and configuration locations. */
  knowPolicies(policies: readonly Policy[]): void {
    for (const policy of policies) this.#policies.set(policy.key, policy);
  }

  /** Time since the trace started, in whole µs. */
  get now(): number {
    return Math.max(0, Math.round((performance.now() - this.#begin) * 1000));
  }

  /** Redacts a secret from all later events. `always`: the secret is from the configuration, not from the client. */
  hide(secret: string | undefined, always = false): void {
    if (secret !== undefined) this.#scrubber.add(secret, always);
  }

  emit(message: TraceMessage, { severity, since, scope }: EventOptions = {}): void {
    const { only } = this.#sink;
    if (!this.#isOpen || only?.has(message.type) === false) return;
    this.#sink.event({
      eventStart: since ?? null,
      eventEnd: this.now,
      severity: severity ?? severityOf(message),
      ...(scope === undefined ? {} : { scope: [scope] }),
      ...(this.#sink.requestId === undefined ? {} : { requestId: this.#sink.requestId }),
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a copy with the same members
      message: redactMessage(message, this.#scrubber) as TraceMessage,
    });
  }

  requestSnapshot(stage: string, final?: FinalRequest): void {
    // Credentials that the configuration adds may be echoed by the backend.
    if (final !== undefined) this.#hideHeaders(final.headers);
    this.#emitLazily(() => ({
      type: 'requestSnapshot',
      stage,
      requestState: snapshotState(this.context, this.#names, { final }),
    }));
  }

  responseSnapshot(stage: string, reply: Reply): void {
    this.#emitLazily(() => ({
      type: 'responseSnapshot',
      stage,
      requestState: snapshotState(this.context, this.#names, { reply }),
    }));
  }

  /** Emits what a policy did. */
  policy(note: PolicyNote): void {
    if (note.action !== 'skip') this.#hasApplied = true;
    this.emit(policyMessage(note, this.#policies.get(note.kind)), {
      severity: severityOfNote(note),
      since: note.since,
    });
  }

  /** Emits an authorization decision on the request or, with `item`, on one item of an MCP server. */
  authorization(
    policy: string,
    decision: Decision,
    item?: { readonly kind: string; readonly target: string; readonly name: string },
  ): void {
    this.#hasApplied = true;
    this.emit(authorizationMessage(policy, decision, this.#policies.get(policy)?.origin?.place, item));
  }

  /** Emits a snapshot after a policy, if it applied. */
  policyDone({ key, trace }: Policy): void {
    if (!this.#hasApplied) return;
    this.#hasApplied = false;
    this.requestSnapshot(trace?.stage ?? key);
  }

  /** Emits the verdict of a guardrail. */
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
    this.#emitLazily(() => celMessage(expression, peek, outcome, this.context, this.#names), { since });
  }

  /** Emits the first `LIMITS.traceBodyBytes` bytes of a body. `truncated`: `bytes` is already cut. */
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

  /** Emits the start and the end of a call made for the request. Returns or throws what `sent` does. */
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

  /**
   * Takes the body sent to the backend: emitted immediately for a stream, which has ended, else when the call starts.
   */
  uploaded(tap: BodyTap, isStream: boolean): void {
    if (tap.isEmpty) return;
    if (isStream) this.body('final request', tap.bytes, tap.truncated);
    else this.#upload = tap;
  }

  /** `problem`: an error reported inside the response, independent of its status. */
  callEnded(target: string, since: number, status: number | null, scope?: string, problem?: string): void {
    this.emit({ type: 'backendCallResult', status, error: problem ?? null, target }, { since, scope });
  }

  callFailed(target: string, since: number, error: unknown, scope?: string): void {
    this.emit({ type: 'backendCallResult', status: null, error: messageOf(error), target }, { since, scope });
  }

  /** Returns a tap for the provider's response, which is emitted by `finished`. */
  rawResponse(): BodyTap {
    this.#raw = new BodyTap();
    return this.#raw;
  }

  /** Emits the end of the response. `status` is 0 if none was sent. Called before the access-log line is written. */
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

  /** Ends the trace. Later events are discarded. */
  end(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#sink.ended();
  }

  /** Builds and emits an event. An error while building must not fail the request. */
  #emitLazily(build: () => TraceMessage, options?: EventOptions): void {
    if (this.isBrief) return;
    let message: TraceMessage;
    try {
      message = build();
    } catch {
      message = { type: 'message', message: 'this step could not be recorded' };
    }
    this.emit(message, options);
  }

  #hideHeaders(raw: readonly string[]): void {
    for (let i = 0; i < raw.length; i += 2) {
      if (!isSensitiveName(raw[i] ?? '', this.#names.headers)) continue;
      const value = raw[i + 1] ?? '';
      this.hide(value);
      // A cookie header holds several values.
      for (const pair of value.split(';')) this.hide(pair.slice(pair.indexOf('=') + 1).trim());
    }
  }
}

const VERDICTS = { pass: 'info', mask: 'warn', reject: 'error', failed: 'error' } as const;

/** A copy of a trace message in which every known secret is redacted. */
function redactMessage(value: unknown, scrubber: Scrubber, depth = 0): unknown {
  if (typeof value === 'string') return scrubber.text(value);
  if (Array.isArray(value)) return value.map((item) => redactMessage(item, scrubber, depth + 1));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      isKeyword(key, item, depth) ? item : redactMessage(item, scrubber, depth + 1),
    ]),
  );
}

/** A credential that equals a keyword of the event format (such as `apply`) must not make the event unreadable. */
function isKeyword(key: string, value: unknown, depth: number): boolean {
  if (depth === 0) return key === 'type' || key === 'stage' || key === 'kind' || key === 'phase';
  return depth === 1 && key === 'type' && (value === 'apply' || value === 'skip');
}
