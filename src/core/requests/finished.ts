import { isRecord, membersOf, textIn } from '../foreign.ts';
import { escapeControls } from '../render/width.ts';

/** A request with the fields of its access-log line, as `/api/requests` lists it. */
export interface FinishedRequest {
  /** Counts from 1 and starts again when the gateway restarts. */
  readonly id: number;
  /** When it finished, in ms since 1970. */
  readonly at: number;
  readonly fields: RequestFields;
}

/** Fields of an access-log line by name. Texts may come from clients. */
export type RequestFields = Readonly<Record<string, unknown>>;

/** Reads one request of `/api/requests`; undefined if it is something else. */
export function readFinished(json: unknown): FinishedRequest | undefined {
  const { id, time, fields } = membersOf(json);
  const at = Date.parse(textIn(time));
  if (typeof id !== 'number' || Number.isNaN(at) || !isRecord(fields)) return undefined;
  return { id, at, fields };
}

/** A field as text that is safe to print; empty if it is absent. */
export function fieldText(fields: RequestFields, name: string): string {
  const value = fields[name];
  if (value === undefined || value === null) return '';
  return escapeControls(typeof value === 'string' ? value : JSON.stringify(value));
}

function fieldNumber(fields: RequestFields, name: string): number | undefined {
  const value = fields[name];
  // Money is a text, so that its digits are exact.
  const number = typeof value === 'string' && value !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}

/** Undefined if `frontendPolicies.accessLog.remove` has removed it. */
export const statusOf = (fields: RequestFields): number | undefined => fieldNumber(fields, 'http.status');

/** In ms; the field is a text such as `12ms`. */
export function durationOf(fields: RequestFields): number | undefined {
  const match = /^(\d+(?:\.\d+)?)ms$/.exec(textIn(fields['duration']));
  return match === null ? undefined : Number(match[1]);
}

/** In `/api/requests`: true for a response that stands until one side ends it, such as a stream of events or a WebSocket. */
export const STREAM_FIELD = 'response.stream';

/** How long the caller waited, in ms. Undefined for streams that stand until one side ends them. */
export const latencyOf = (fields: RequestFields): number | undefined =>
  fields[STREAM_FIELD] === true ? undefined : durationOf(fields);

export const inputTokensOf = (fields: RequestFields): number | undefined =>
  fieldNumber(fields, 'gen_ai.usage.input_tokens');
export const outputTokensOf = (fields: RequestFields): number | undefined =>
  fieldNumber(fields, 'gen_ai.usage.output_tokens');
/** In US dollars. */
export const costOf = (fields: RequestFields): number | undefined =>
  fieldNumber(fields, 'gw.ai.usage.cost.total');

export const routeOf = (fields: RequestFields): string => fieldText(fields, 'route');
export const userOf = (fields: RequestFields): string => fieldText(fields, 'jwt.sub');
export const toolOf = (fields: RequestFields): string => fieldText(fields, 'gen_ai.tool.name');
export const sessionOf = (fields: RequestFields): string => fieldText(fields, 'mcp.session.id');

/** The MCP server that answered, or the provider of the model. */
export const targetOf = (fields: RequestFields): string =>
  fieldText(fields, 'mcp.target') || fieldText(fields, 'gen_ai.provider.name');

/** The model that answered, or else the one that was asked for. */
export const modelOf = (fields: RequestFields): string =>
  fieldText(fields, 'gen_ai.response.model') || fieldText(fields, 'gen_ai.request.model');

/** What the request is about: the called tool, the model, or method and path. */
export function subjectOf(fields: RequestFields): string {
  const method = fieldText(fields, 'mcp.method.name');
  if (method !== '') {
    const item =
      toolOf(fields) || fieldText(fields, 'gen_ai.prompt.name') || fieldText(fields, 'mcp.resource.uri');
    const target = fieldText(fields, 'mcp.target');
    return joined(method, item, target === '' ? '' : `on ${target}`);
  }
  const asked = fieldText(fields, 'gen_ai.request.model');
  const model = modelOf(fields);
  if (model !== '') {
    const operation = fieldText(fields, 'gen_ai.operation.name') || fieldText(fields, 'http.path');
    return joined(operation, asked === '' || asked === model ? model : `${asked} → ${model}`);
  }
  if (fields['protocol'] === 'tcp') return joined('tcp', fieldText(fields, 'endpoint'));
  const call = fieldText(fields, 'a2a.method');
  return call === ''
    ? joined(fieldText(fields, 'http.method'), fieldText(fields, 'http.path'))
    : joined('a2a', call);
}

const joined = (...parts: readonly string[]): string => parts.filter((part) => part !== '').join(' ');
