import { z } from 'zod';
import { redactTarget } from '../../core/credentials.ts';
import { LIMITS } from '../../core/limits.ts';
import {
  escapeControls,
  escapeInJson,
  type LineFormat,
  type LineSink,
  type Log,
  quote,
  type TerminalFormat,
  timestamp,
} from '../../core/log.ts';
import { spansText } from '../../core/render/span.ts';
import { requestLineSpans } from '../../core/requests/line.ts';
import { mapping, nonEmpty } from '../../core/schema/mapping.ts';
import { tryEvaluate } from '../expressions/cel/expression.ts';
import { recordedResponseBody } from '../expressions/request-variables.ts';
import { resolverFor } from '../expressions/variable.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { CelResult } from '../kernel/expression.ts';
import type { FieldValue } from '../kernel/fact.ts';
import type { Reply, RequestContext } from '../kernel/request/request-context.ts';
import { Slot } from '../kernel/slot.ts';
import { UpstreamBody } from '../transport/upstream/upstream-body.ts';
import { type AddedFields, compileAddedFields } from './added-fields.ts';
import { type Field, remainingFields, requestFields } from './request-fields.ts';
import { logScope } from './scopes.ts';

export const accessLogSchema = mapping('The access log.', {
  add: z
    .record(nonEmpty, nonEmpty)
    .default({})
    .describe(
      'Fields to add to each line, as CEL expressions. A field whose expression fails or evaluates to null is omitted. A field with the name of a built-in field replaces it.',
    ),
  remove: z.array(nonEmpty).default([]).describe('Names of fields to omit.'),
  filter: nonEmpty.optional().describe('CEL expression: only requests for which it is true are logged.'),
});

/** Compiled `frontendPolicies.accessLog`. */
export interface AccessLogPolicy {
  /** Names of built-in fields that are omitted: removed ones, and those replaced by an added field. */
  readonly removed: ReadonlySet<string>;
  /** Whether a line is written for this request. A filter that fails counts as false. Default: true. */
  isLogged(ctx: RequestContext): boolean;
  readonly added: AddedFields;
}

export function compileAccessLogPolicy(
  { add, remove, filter }: z.output<typeof accessLogSchema>,
  context: CompileContext,
): AccessLogPolicy {
  const condition = filter === undefined ? undefined : context.at('filter').condition(filter, logScope);
  return {
    removed: new Set([...remove, ...Object.keys(add)]),
    // As upstream: a filter that fails drops the line.
    isLogged: (ctx) => condition === undefined || tryEvaluate(condition, resolverFor(ctx)) === true,
    added: compileAddedFields(add, context.at('add')),
  };
}

/** Called for every finished request with its access-log fields, even if no line is written. */
export type RequestFinishedListener = (fields: readonly Field[], ctx: RequestContext) => void;

export interface AccessLogOptions {
  readonly sink: LineSink;
  readonly format: LineFormat;
  /**
   * Its directives decide: the access log is the target `request` at level info. At debug, lines also carry connection and
   * request numbers.
   */
  readonly log: Log;
}

/** Computes the access-log fields of finished requests, writes the log line and notifies listeners. */
export class AccessLog {
  readonly #options: AccessLogOptions;
  readonly #print: (fields: readonly Field[]) => string;
  readonly #listeners = new Set<RequestFinishedListener>();

  constructor(options: AccessLogOptions) {
    this.#options = options;
    this.#print = options.format === 'json' ? jsonLine : textLine;
  }

  /** Adds a listener. The returned function removes it. */
  onRequestFinished(listener: RequestFinishedListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Writes the line of a finished request, if the log level and `policy` allow it, and notifies listeners. `status` is
   * 0 if the client disconnected before the response began (logged as 499). Returns the built-in fields; undefined if
   * nothing needed them (no line, no listener, `needsFields` false), because they are then not computed.
   */
  ended(
    ctx: RequestContext,
    status: number,
    policy: AccessLogPolicy,
    needsFields = false,
  ): readonly Field[] | undefined {
    const { directives } = this.#options.log;
    if (ctx.timings.endedAt === undefined) ctx.timings.end();
    // Rules may have cached variables earlier; the log needs their final values.
    ctx.clearVariables();
    const hasLine = directives.allows('request', 'info') && policy.isLogged(ctx);
    if (!hasLine && !needsFields && this.#listeners.size === 0) return undefined;
    // 499 is nginx's status for a client that closed the request.
    return this.#record(ctx, requestFields(ctx, status === 0 ? 499 : status), policy, hasLine);
  }

  /** The same for a request whose fields or line could not be made because of an error of our own: one line for each request. */
  endedWithout(ctx: RequestContext, status: number): void {
    if (this.#options.log.directives.allows('request', 'info'))
      this.#record(ctx, remainingFields(ctx, status === 0 ? 499 : status), PLAIN_POLICY, true);
  }

  #record(
    ctx: RequestContext,
    base: readonly Field[],
    policy: AccessLogPolicy,
    hasLine: boolean,
  ): readonly Field[] {
    const { log, sink, format } = this.#options;
    const { kept, added } = configuredFields(base, policy, ctx);
    const fields = added.length === 0 ? kept : [...kept, ...added];
    if (hasLine) {
      // If debug lines mention the request, its number connects them to this line.
      const hasNumber = isNumbered(ctx) || log.directives.allows('request', 'debug');
      const own = hasNumber ? numbers(ctx) : [];
      sink.write(
        typeof format === 'object'
          ? terminalLine(kept, [...own, ...added], format)
          : this.#print(hasNumber ? [...own, ...fields] : fields),
      );
    }
    for (const listener of this.#listeners) {
      try {
        listener(fields, ctx);
      } catch (error) {
        log.internalError('request', error);
      }
    }
    return base;
  }

  /** Writes the line of a connection whose bytes were passed on. Expressions of the configuration are for requests. */
  relayed(all: readonly Field[], { removed }: AccessLogPolicy): void {
    const { log, sink, format } = this.#options;
    if (!log.directives.allows('request', 'info')) return;
    const fields = all.filter(([name]) => !removed.has(name));
    sink.write(typeof format === 'object' ? terminalLine(fields, [], format) : this.#print(fields));
  }
}

/** Without what the configuration adds or removes. */
const PLAIN_POLICY: AccessLogPolicy = { removed: new Set(), isLogged: () => true, added: () => [] };

/** The fields of a line: the built-in ones that are kept, and those of the configuration. */
export function configuredFields(
  base: readonly Field[],
  { removed, added }: Pick<AccessLogPolicy, 'removed' | 'added'>,
  ctx: RequestContext,
): { readonly kept: readonly Field[]; readonly added: readonly Field[] } {
  return {
    kept: removed.size === 0 ? base : base.filter(([name]) => !removed.has(name)),
    added: added(ctx).map(([name, value]) => [name, redactedValue(value), 'quoted']),
  };
}

/** The result of an expression may be a URL with credentials. They are redacted, as in the built-in `http.path`. */
const redactedValue = (value: FieldValue): FieldValue =>
  typeof value === 'string' ? redactTarget(value) : value;

let connections = 0;
const connectionNumbers = new WeakMap<object, number>();

/** Numbers of the connection and the request. Each is assigned when first logged, counting from 1. */
function numbers(ctx: RequestContext): Field[] {
  const known = connectionNumbers.get(ctx.client.connection);
  const connection = known ?? ++connections;
  if (known === undefined) connectionNumbers.set(ctx.client.connection, connection);
  return [
    ['connection.id', connection],
    ['request.id', numberOf(ctx)],
  ];
}

/** Replaces an object or list whose JSON exceeds `LIMITS.logFieldLength` characters by the truncated JSON text. */
function truncateJson(value: CelResult): CelResult {
  if (typeof value !== 'object' || value === null) return value;
  const text = JSON.stringify(value);
  return text.length > LIMITS.logFieldLength ? truncate(text) : value;
}

/** One short line for people; it has a selection of the fields, and all that the configuration adds. */
function terminalLine(
  fields: readonly Field[],
  added: readonly Field[],
  { color, columns }: TerminalFormat,
): string {
  const shown = Object.fromEntries(fields);
  const spans = requestLineSpans(shown, {
    at: Date.now(),
    columns,
    added: added.map(([name, value]) => [name, value]),
  });
  return `${spansText(spans, color)}\n`;
}

function textLine(fields: readonly Field[]): string {
  let text = '';
  // By index: destructuring each field doubles the cost of the loop.
  for (let index = 0; index < fields.length; index += 1) {
    const field = fields[index];
    if (field?.[1] !== undefined) text += ` ${field[0]}=${textOf(field[1], field[2])}`;
  }
  // Control characters are escaped once per line: ten times cheaper than once per field.
  return `${timestamp(Date.now())}\tinfo\trequest${escapeControls(text)}\n`;
}

/** Formats one value. Control characters are escaped later, by `textLine`. */
function textOf(value: CelResult, style: Field[2]): string {
  if (typeof value === 'string') return style === 'quoted' ? quote(value) : quoteIfNeeded(value);
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return truncate(
    JSON.stringify(value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value),
  );
}

/** A value as it is written in JSON: bytes as base64, long ones truncated. */
export function jsonValue(value: CelResult): CelResult {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  return typeof value === 'string' ? truncate(value) : truncateJson(value);
}

function jsonLine(fields: readonly Field[]): string {
  const line: Record<string, FieldValue> = { level: 'info', time: timestamp(Date.now()), scope: 'request' };
  for (const [name, value] of fields) {
    if (value !== undefined) line[name] = jsonValue(value);
  }
  return `${escapeInJson(JSON.stringify(line))}\n`;
}

/**
 * Unquoted, to keep lines greppable, unless a space or quote in the value could be read as the start of another field.
 */
function quoteIfNeeded(value: string): string {
  return value === '' || /[ "]/.test(value) ? quote(value) : truncate(value);
}

function truncate(value: string): string {
  return value.length > LIMITS.logFieldLength ? `${value.slice(0, LIMITS.logFieldLength)}…` : value;
}

/**
 * Copies the first `limit` bytes of the response body while it is sent to the client, for access-log expressions that
 * read `response.body`. A body that is already in memory is kept whole.
 */
export function recordBody(ctx: RequestContext, { body }: Reply, limit: number): void {
  if (typeof body === 'string' || body instanceof Uint8Array) recordedResponseBody.set(ctx, () => body);
  if (!(body instanceof UpstreamBody)) return;
  const chunks: Buffer[] = [];
  let size = 0;
  body.observers.push({
    see(chunk) {
      if (size >= limit) return;
      chunks.push(chunk.subarray(0, limit - size));
      size += chunk.length;
    },
  });
  recordedResponseBody.set(ctx, () => Buffer.concat(chunks));
}

const requestNumbers = new Slot<number>();
let requestCount = 0;

/** The request's number in the log, assigned on the first call and counting from 1. */
export function numberOf(ctx: RequestContext): number {
  return requestNumbers.ensure(ctx, () => ++requestCount);
}

/** Whether the request already has a number, that is, whether log lines mention it. */
function isNumbered(ctx: RequestContext): boolean {
  return requestNumbers.get(ctx) !== undefined;
}

/**
 * Warns on stderr when access-log lines are dropped because stdout is not read or cannot be written: at the first dropped line, then at most
 * once per `LIMITS.logLossWarningInterval` ms while more are dropped.
 */
export class DroppedLinesReporter {
  readonly #sink: LineSink;
  readonly #log: Log;
  #reported = 0;
  #hasEnded = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(sink: LineSink, log: Log) {
    this.#sink = sink;
    this.#log = log;
    sink.onDropped?.(() => {
      if (this.#timer === undefined) this.#warn();
    });
  }

  /** Lines dropped since the start. */
  get count(): number {
    return this.#sink.dropped;
  }

  /** Reports lines dropped since the last warning and stops the timer. */
  close(): void {
    clearTimeout(this.#timer);
    this.#warn();
    clearTimeout(this.#timer);
  }

  #warn(): void {
    this.#timer = undefined;
    const lost = this.count - this.#reported;
    if (lost === 0 || this.#hasEnded) return;
    this.#reported = this.count;
    const { problem, isEnded = false } = this.#sink.failure ?? {};
    const why = problem === undefined ? 'stdout is not read fast enough' : `stdout: ${problem}`;
    this.#log.warn('request', `access-log lines were lost: ${why}`, { lost, total: this.count });
    // All further lines are lost, too: said once.
    this.#hasEnded = isEnded;
    if (isEnded) return;
    this.#timer = setTimeout(() => this.#warn(), LIMITS.logLossWarningInterval).unref();
  }
}
