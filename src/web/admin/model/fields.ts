import { isRefusal, type Outcome, outcomeOfFields } from '../../../core/outcome.ts';
import { STREAM_FIELD } from '../../../core/requests/finished.ts';
import { duration } from '../../shared/format.ts';
import { visible } from '../../shared/visible.ts';
import type { Entry } from './requests.ts';

// Accessors for the fields of an access-log line, whose texts may come from clients.

/** A field as text that is safe to display; empty if it is absent. */
export function field({ fields }: Entry, name: string): string {
  const value = fields[name];
  if (value === undefined || value === null) return '';
  return visible(typeof value === 'string' ? value : JSON.stringify(value));
}

function numberField({ fields }: Entry, name: string): number | undefined {
  const value = fields[name];
  // Money is a text, so that its digits are exact.
  const number = typeof value === 'string' && value !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}

export const statusOf = (entry: Entry): number => numberField(entry, 'http.status') ?? 0;

/** In ms; the field is a text such as `12ms`. */
export function durationOf({ fields }: Entry): number | undefined {
  const match = /^(\d+(?:\.\d+)?)ms$/.exec(String(fields['duration']));
  return match === null ? undefined : Number(match[1]);
}

/** How long the caller waited, in ms. Undefined for streams that stand until one side ends them: their duration is not a latency. */
export const latencyOf = (entry: Entry): number | undefined =>
  entry.fields[STREAM_FIELD] === true ? undefined : durationOf(entry);

export const inputOf = (entry: Entry): number => numberField(entry, 'gen_ai.usage.input_tokens') ?? 0;
export const outputOf = (entry: Entry): number => numberField(entry, 'gen_ai.usage.output_tokens') ?? 0;
/** In US dollars. */
export const costOf = (entry: Entry): number | undefined => numberField(entry, 'gw.ai.usage.cost.total');

export const routeOf = (entry: Entry): string => field(entry, 'route');

/** As the client called it, and as the record has it: providers answer with names of versions, and several models with the same. */
export const modelOf = (entry: Entry): string =>
  field(entry, 'gen_ai.request.model') || field(entry, 'gen_ai.response.model');

/** Whether anything failed, including failures reported with a successful status: what an operator looks for first. */
export const isError = ({ fields }: Entry): boolean => outcomeOfFields(fields).outcome === 'bad';

/** Whether it was refused: no key, no rule, no route, over a limit. Not among the errors. */
export const isRefused = (entry: Entry): boolean =>
  isRefusal(outcomeOfFields(entry.fields).outcome, statusOf(entry));

/** The requested tool, prompt, resource or model: `tools/call echo`, `gpt-4o-mini`. Empty for other requests. */
export function subjectOf(entry: Entry): string {
  const method = field(entry, 'mcp.method.name');
  if (method === '') return modelOf(entry);
  return [method, itemOf(entry)].filter((part) => part !== '').join(' ');
}

/** The MCP tool, prompt or resource of a request. */
const itemOf = (entry: Entry): string =>
  toolOf(entry) || field(entry, 'gen_ai.prompt.name') || field(entry, 'mcp.resource.uri');

export const toolOf = (entry: Entry): string => field(entry, 'gen_ai.tool.name');

/** Who answered: the MCP target, or the provider of the model. */
export const targetOf = (entry: Entry): string =>
  field(entry, 'mcp.target') || field(entry, 'gen_ai.provider.name');

/** The address without the port, which changes with each connection. */
export const addressOf = (entry: Entry): string => field(entry, 'src.addr').replace(/:\d+$/, '');

/** Who sent the request: the name of its key and the user, as far as policies found them out. */
export const callerOf = (entry: Entry): string => {
  const [key, user] = [field(entry, 'caller.key'), field(entry, 'jwt.sub') || field(entry, 'caller.user')];
  return key === '' || user === '' || key === user ? key || user : `${key} (${user})`;
};

const problems = new WeakMap<Entry, string>();

/** Why a request was refused or failed, in full: the error, then details that the client does not get. Empty for a success. */
export function problemOf(entry: Entry): string {
  const known = problems.get(entry) ?? problemIn(entry);
  problems.set(entry, known);
  return known;
}

function problemIn({ fields }: Entry): string {
  const { problem } = outcomeOfFields(fields);
  const detail = fields['error.detail'];
  return [problem, typeof detail === 'string' ? detail : undefined]
    .filter((part) => part !== undefined && part !== '')
    .map((part) => visible(part ?? '').replace(/\s+/g, ' '))
    .join(': ');
}

/** `GET /files/a.txt` */
export const lineOf = (entry: Entry): string => `${field(entry, 'http.method')} ${field(entry, 'http.path')}`;

/** `12 ms`, `3.4 s`; empty if unknown. */
export function tookText(entry: Entry): string {
  const took = durationOf(entry);
  return took === undefined ? '' : duration(took);
}

/** Symbols for outcomes, so that color is never the only distinction. */
export const MARKS: Readonly<Record<Outcome, string>> = { good: '✓', warn: '!', bad: '✗' };
