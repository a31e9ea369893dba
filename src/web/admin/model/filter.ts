import { callerOf, field, isError, isRefused, modelOf, statusOf } from './fields.ts';
import type { Entry } from './requests.ts';

/** Filter of a list of requests, stored in the address of the page. */
export interface Filter {
  /** `2`, `3`, `4`, `5`: the first digit; `errors`: what failed; `refused`: what was not allowed. */
  readonly status: string;
  readonly route: string;
  readonly model: string;
  /** Name of the key and user, as the table shows them. */
  readonly caller: string;
  /** Matches any field, ignoring case. */
  readonly text: string;
  /** Requests from this time on, and before this one: RFC 3339. */
  readonly from: string;
  readonly to: string;
}

const NAMES = ['status', 'route', 'model', 'caller', 'text', 'from', 'to'] as const;

export function readFilter(query: URLSearchParams): Filter {
  const [status = '', route = '', model = '', caller = '', text = '', from = '', to = ''] = NAMES.map(
    (name) => query.get(name) ?? '',
  );
  return { status, route, model, caller, text, from, to };
}

/** Query for the address, without unset values. */
export function writeFilter(filter: Filter): Record<string, string> {
  return Object.fromEntries(
    NAMES.map((name) => [name, filter[name]] as const).filter(([, value]) => value !== ''),
  );
}

export function narrow(entries: readonly Entry[], filter: Filter): readonly Entry[] {
  const { status, route, model, caller, text, from, to } = filter;
  const wanted = text.trim().toLowerCase();
  if (NAMES.every((name) => filter[name].trim() === '')) return entries;
  const [first, end] = [timeOr(from, Number.NEGATIVE_INFINITY), timeOr(to, Number.POSITIVE_INFINITY)];
  return entries.filter(
    (entry) =>
      (status === '' || hasStatus(entry, status)) &&
      (route === '' || field(entry, 'route') === route) &&
      (model === '' || modelOf(entry) === model) &&
      (caller === '' || callerOf(entry) === caller) &&
      entry.at >= first &&
      entry.at < end &&
      (wanted === '' || textOf(entry).includes(wanted)),
  );
}

/** A time from the address of the page, which may contain anything. */
function timeOr(text: string, otherwise: number): number {
  const time = Date.parse(text);
  return Number.isNaN(time) ? otherwise : time;
}

function hasStatus(entry: Entry, status: string): boolean {
  if (status === 'refused') return isRefused(entry);
  return status === 'errors' ? isError(entry) : String(statusOf(entry)).startsWith(status);
}

/** Searchable text of each entry, built once. */
const texts = new WeakMap<Entry, string>();

function textOf(entry: Entry): string {
  const known = texts.get(entry);
  if (known !== undefined) return known;
  const text = Object.entries(entry.fields)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join('\n')
    .toLowerCase();
  texts.set(entry, text);
  return text;
}

/** The values of a field, most frequent first. */
export function valuesOf(entries: readonly Entry[], valueIn: (entry: Entry) => string, most = 100): string[] {
  const counts = new Map<string, number>();
  for (const entry of entries) {
    const value = valueIn(entry);
    if (value !== '') counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .slice(0, most)
    .map(([value]) => value);
}
