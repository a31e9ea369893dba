import { redactTarget } from '../../core/credentials.ts';
import { LIMITS } from '../../core/limits.ts';
import {
  escapeControls,
  escapeInJson,
  type LineSink,
  type LogFormat,
  quote,
  timestamp,
} from '../../core/log.ts';
import type { LogDirectives } from '../../core/log-directives.ts';
import { recordedResponseBody } from '../expressions/request-variables.ts';
import type { CelResult } from '../kernel/expression.ts';
import type { Reply, RequestContext } from '../kernel/request-context.ts';
import { UpstreamBody } from '../transport/upstream-body.ts';
import type { AccessLogPolicy } from './access-log-policy.ts';
import { type Field, type FieldValue, requestFields } from './request-fields.ts';
import { isNumbered, numberOf } from './request-number.ts';

/** Called for every finished request with its access-log fields, even if no line is written. Must not throw. */
export type RequestFinishedListener = (fields: readonly Field[], ctx: RequestContext) => void;

export interface AccessLogOptions {
  readonly sink: LineSink;
  readonly format: LogFormat;
  /**
   * The access log is the target `request` at level info. At debug, lines also carry connection and request numbers.
   */
  readonly directives: LogDirectives;
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
    const { directives, sink } = this.#options;
    ctx.timings.endedAt = Date.now();
    // Rules may have cached variables earlier; the log needs their final values.
    ctx.clearVariables();
    const hasLine = directives.allows('request', 'info') && policy.isLogged(ctx);
    if (!hasLine && !needsFields && this.#listeners.size === 0) return undefined;
    // 499 is nginx's status for a client that closed the request.
    const base = requestFields(ctx, status === 0 ? 499 : status);
    const kept = policy.removed.size === 0 ? base : base.filter(([name]) => !policy.removed.has(name));
    const fields = [
      ...kept,
      ...policy.added(ctx).map(([name, value]): Field => [name, redactedValue(value), 'quoted']),
    ];
    if (hasLine) {
      // If debug lines mention the request, its number connects them to this line.
      const hasNumber = isNumbered(ctx) || directives.allows('request', 'debug');
      sink.write(this.#print(hasNumber ? [...numbers(ctx), ...fields] : fields));
    }
    for (const listener of this.#listeners) listener(fields, ctx);
    return base;
  }
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

function textLine(fields: readonly Field[]): string {
  let text = '';
  // By index: destructuring each field doubles the cost of the loop, and most fields are undefined.
  for (let index = 0; index < fields.length; index += 1) {
    const field = fields[index] as Field;
    if (field[1] !== undefined) text += ` ${field[0]}=${textOf(field[1], field[2])}`;
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

function jsonLine(fields: readonly Field[]): string {
  const line: Record<string, FieldValue> = { level: 'info', time: timestamp(Date.now()), scope: 'request' };
  for (const [name, value] of fields) {
    if (value instanceof Uint8Array) line[name] = Buffer.from(value).toString('base64');
    else if (value !== undefined)
      line[name] = typeof value === 'string' ? truncate(value) : truncateJson(value);
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
