import { LIMITS } from '../../core/limits.ts';
import {
  escapeControls,
  escapeInJson,
  type LineSink,
  type LogFormat,
  quote,
  timestamp,
} from '../../core/log.ts';
import type { CelResult } from '../cel/expression.ts';
import type { Exchange } from '../http/exchange.ts';
import { withoutParameters } from '../http/query.ts';
import type { AccessLogPolicy } from './access-log-policy.ts';

type FieldValue = CelResult | undefined;
type Field = readonly [name: string, value: FieldValue, style?: 'quoted'];

/**
 * Every field of an access-log line, in the order they are printed; undefined ones are left out.
 * Names and order: the specification's "Access log" and upstream's wire format.
 */
function fieldsOf(x: Exchange, status: number): Field[] {
  const { mcp } = x;
  return [
    ['gateway', x.gateway],
    ['listener', x.listener],
    ['route', x.route],
    ['endpoint', x.endpoint],
    ['src.addr', sourceAddress(x)],
    ['http.method', x.method],
    ['http.host', x.request.headers.host ?? ''],
    ['http.path', shownTarget(x)],
    ['http.version', `HTTP/${x.request.httpVersion}`],
    ['http.status', status],
    ['protocol', x.protocol],
    ['mcp.method.name', mcp?.method],
    ['mcp.target', mcp?.target],
    ['mcp.resource.type', mcp?.resourceType],
    ['mcp.resource.uri', mcp?.resourceUri],
    ['gen_ai.tool.name', mcp?.tool],
    ['gen_ai.prompt.name', mcp?.prompt],
    ['mcp.session.id', mcp?.sessionId],
    ['mcp.error.code', mcp?.errorCode],
    ['mcp.error.message', mcp?.errorMessage, 'quoted'],
    ...llmFieldsOf(x),
    ['error', x.error, 'quoted'],
    ['error.detail', x.errorDetail, 'quoted'],
    ['reason', x.reason === 'Upstream' ? undefined : x.reason],
    ['duration', `${Math.round(performance.now() - x.startedClock)}ms`],
  ];
}

function llmFieldsOf({ llm }: Exchange): Field[] {
  if (llm === undefined) return [];
  const { usage, firstTokenAfter, lastTokenAfter, cost, request } = llm;
  const isStream = llm.streaming && firstTokenAfter !== undefined;
  const perToken =
    isStream && lastTokenAfter !== undefined && usage !== undefined && usage.output > 0
      ? (lastTokenAfter - firstTokenAfter) / usage.output
      : undefined;
  return [
    ['gen_ai.operation.name', llm.operation],
    ['gen_ai.provider.name', llm.provider],
    ['gen_ai.request.model', llm.requestModel],
    ['gen_ai.response.model', llm.responseModel],
    ['gen_ai.usage.input_tokens', usage?.input],
    ['gen_ai.usage.cache_creation.input_tokens', usage?.cacheWrite],
    ['gen_ai.usage.cache_read.input_tokens', usage?.cachedInput],
    ['gen_ai.usage.output_tokens', usage?.output],
    ['gen_ai.usage.reasoning_tokens', usage?.reasoning],
    ['gw.ai.time_to_first_token', isStream ? seconds(firstTokenAfter) : undefined],
    ['gw.ai.time_per_output_token', perToken === undefined ? undefined : seconds(perToken)],
    ['gw.ai.stream.held', llm.heldFor === undefined ? undefined : `${llm.heldFor}ms`],
    ['gw.ai.usage.cost.total', cost?.total],
    // Only where prices are wanted and missing: without a catalog there is nothing to explain.
    [
      'gw.ai.usage.cost.problem',
      cost?.status === 'Missing' || cost?.status === 'Unpriced' ? cost.reason : undefined,
      'quoted',
    ],
    ['gen_ai.request.temperature', numberOf(request['temperature'])],
    ['gen_ai.request.top_p', numberOf(request['top_p'])],
    ['gen_ai.request.max_tokens', numberOf(request['max_tokens'])],
  ];
}

const seconds = (milliseconds: number): number => Math.round(milliseconds * 1000) / 1_000_000;
const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);

export type AccessLog = (x: Exchange, status: number) => void;

/** Writes one line per request to the sink. `status` is 0 when the client left before a response began. */
export function createAccessLog(sink: LineSink, format: LogFormat, policy: AccessLogPolicy): AccessLog {
  const print = format === 'json' ? jsonLine : textLine;
  return (x, status) => {
    x.endedAt = Date.now();
    // Rules read variables early; the log wants what they are in the end.
    x.forgetVariables();
    if (!policy.isWanted(x)) return;
    // nginx's number for a client that left before its answer.
    const base = fieldsOf(x, status === 0 ? 499 : status);
    const kept = policy.removed.size === 0 ? base : base.filter(([name]) => !policy.removed.has(name));
    sink.write(print([...kept, ...policy.added(x).map(([name, value]): Field => [name, value, 'quoted'])]));
  };
}

/** An object or list that prints longer than a field may be becomes its beginning, as text. */
function shortened(value: CelResult): CelResult {
  if (typeof value !== 'object' || value === null) return value;
  const text = JSON.stringify(value);
  return text.length > LIMITS.logFieldLength ? cut(text) : value;
}

function textLine(fields: readonly Field[]): string {
  let line = `${timestamp(Date.now())}\tinfo\trequest`;
  for (const [name, value, style] of fields)
    if (value !== undefined) line += ` ${name}=${textOf(value, style)}`;
  return `${line}\n`;
}

function textOf(value: CelResult, style: Field[2]): string {
  if (typeof value === 'string') return style === 'quoted' ? quote(value) : plain(value);
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return escapeControls(
    cut(JSON.stringify(value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value)),
  );
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
  return value === '' || /[ "]/.test(value) ? quote(value) : escapeControls(cut(value));
}

function cut(value: string): string {
  return value.length > LIMITS.logFieldLength ? `${value.slice(0, LIMITS.logFieldLength)}…` : value;
}

/** The target as sent, without parameters that held a credential. */
function shownTarget({ request, secretParameters }: Exchange): string | undefined {
  const { url } = request;
  const at = url?.indexOf('?') ?? -1;
  if (url === undefined || secretParameters === undefined || at === -1) return url;
  return url.slice(0, at) + withoutParameters(url.slice(at), secretParameters);
}

function sourceAddress(x: Exchange): string {
  const address = x.sourceAddress;
  return address.includes(':') ? `[${address}]:${x.sourcePort}` : `${address}:${x.sourcePort}`;
}
