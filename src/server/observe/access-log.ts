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
import type { CelResult } from '../kernel/expression.ts';
import type { RequestContext } from '../kernel/request-context.ts';
import type { AccessLogPolicy } from './access-log-policy.ts';
import { type Field, type FieldValue, requestFields } from './request-fields.ts';
import { isNumbered, numberOf } from './request-number.ts';

/** Told of every request that has ended, with its fields as the access log has them, also when no line is written. */
export type RequestFinishedListener = (fields: readonly Field[], ctx: RequestContext) => void;

export interface AccessLogOptions {
  readonly sink: LineSink;
  readonly format: LogFormat;
  /** The access log is the target `request`, at level info; at debug it numbers connections and requests. */
  readonly directives: LogDirectives;
}

/** What happens with the fields of a request that has ended: a line of the access log, and whoever listens. */
export class AccessLog {
  readonly #options: AccessLogOptions;
  readonly #print: (fields: readonly Field[]) => string;
  readonly #listeners = new Set<RequestFinishedListener>();

  constructor(options: AccessLogOptions) {
    this.#options = options;
    this.#print = options.format === 'json' ? jsonLine : textLine;
  }

  /** Adds a listener until the returned function is called. Listeners must not throw. */
  onRequestFinished(listener: RequestFinishedListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Writes one line for the request, unless it is not wanted. `status` is 0 when the client left before a response
   * began. Fields are computed once, and only when somebody reads them: they are returned.
   */
  ended(
    ctx: RequestContext,
    status: number,
    policy: AccessLogPolicy,
    wantsFields = false,
  ): readonly Field[] | undefined {
    const { directives, sink } = this.#options;
    ctx.endedAt = Date.now();
    // Rules read variables early; the log wants what they are in the end.
    ctx.clearVariables();
    const hasLine = directives.allows('request', 'info') && policy.isWanted(ctx);
    if (!hasLine && !wantsFields && this.#listeners.size === 0) return undefined;
    // nginx's number for a client that left before its answer.
    const base = requestFields(ctx, status === 0 ? 499 : status);
    const kept = policy.removed.size === 0 ? base : base.filter(([name]) => !policy.removed.has(name));
    const fields = [
      ...kept,
      ...policy.added(ctx).map(([name, value]): Field => [name, shownValue(value), 'quoted']),
    ];
    if (hasLine) {
      // One of which more was said can be found again.
      const hasNumber = isNumbered(ctx) || directives.allows('request', 'debug');
      sink.write(this.#print(hasNumber ? [...numbers(ctx), ...fields] : fields));
    }
    for (const listener of this.#listeners) listener(fields, ctx);
    return base;
  }
}

/** What an expression gives may be a URL with credentials; the access log's own `http.path` is shown without. */
const shownValue = (value: FieldValue): FieldValue =>
  typeof value === 'string' ? redactTarget(value) : value;

let connections = 0;
const connectionNumbers = new WeakMap<object, number>();

/** Numbers of the connection and of the request, counted from the first one that was logged with them. */
function numbers(ctx: RequestContext): Field[] {
  const known = connectionNumbers.get(ctx.connection);
  const connection = known ?? ++connections;
  if (known === undefined) connectionNumbers.set(ctx.connection, connection);
  return [
    ['connection.id', connection],
    ['request.id', numberOf(ctx)],
  ];
}

/** An object or list that prints longer than a field may be becomes its beginning, as text. */
function shortened(value: CelResult): CelResult {
  if (typeof value !== 'object' || value === null) return value;
  const text = JSON.stringify(value);
  return text.length > LIMITS.logFieldLength ? cut(text) : value;
}

function textLine(fields: readonly Field[]): string {
  let text = '';
  // By index: to take each field apart in the head of the loop costs as much as the rest of it, and most are undefined.
  for (let index = 0; index < fields.length; index += 1) {
    const field = fields[index] as Field;
    if (field[1] !== undefined) text += ` ${field[0]}=${textOf(field[1], field[2])}`;
  }
  // All fields at once: one scan of the line costs a tenth of one for each field.
  return `${timestamp(Date.now())}\tinfo\trequest${escapeControls(text)}\n`;
}

/** Control characters are still as they came. */
function textOf(value: CelResult, style: Field[2]): string {
  if (typeof value === 'string') return style === 'quoted' ? quote(value) : plain(value);
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return cut(JSON.stringify(value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value));
}

function jsonLine(fields: readonly Field[]): string {
  const line: Record<string, FieldValue> = { level: 'info', time: timestamp(Date.now()), scope: 'request' };
  for (const [name, value] of fields) {
    if (value instanceof Uint8Array) line[name] = Buffer.from(value).toString('base64');
    else if (value !== undefined) line[name] = typeof value === 'string' ? cut(value) : shortened(value);
  }
  return `${escapeInJson(JSON.stringify(line))}\n`;
}

/** As it is, so that lines stay greppable; quoted when a space or quote in it could pass for another field. */
function plain(value: string): string {
  return value === '' || /[ "]/.test(value) ? quote(value) : cut(value);
}

function cut(value: string): string {
  return value.length > LIMITS.logFieldLength ? `${value.slice(0, LIMITS.logFieldLength)}…` : value;
}
