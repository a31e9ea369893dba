import { outcomeOfFields } from '../../core/outcome.ts';
import {
  modelOf,
  type RequestFields,
  routeOf,
  statusOf,
  targetOf,
  toolOf,
  userOf,
} from '../../core/requests/finished.ts';

/** What a request is filtered by: values of the same kind are alternatives, and all kinds must match. */
export type RequestFilter = (fields: RequestFields) => boolean;

/** Names of the filters that compare a text, each with the text of a request. */
export const TEXT_FILTERS = {
  route: routeOf,
  target: targetOf,
  model: modelOf,
  tool: toolOf,
  user: userOf,
} as const;
export type TextFilter = keyof typeof TEXT_FILTERS;

export type FilterTexts = { readonly [Name in TextFilter | 'status']?: string | undefined };

/** A text that is not a filter of statuses. */
export class InvalidStatusFilter extends Error {
  readonly part: string;

  constructor(part: string) {
    super(`"${part}" is not a status`);
    this.name = 'InvalidStatusFilter';
    this.part = part;
  }
}

/**
 * Compiles filters from lists separated by commas: `status` such as `404`, `5xx` or `error` (failed, whatever the
 * status), and texts in which `*` stands for anything. A route is also found by its last part.
 *
 * @throws InvalidStatusFilter
 */
export function requestFilter(texts: FilterTexts): RequestFilter {
  const filters: RequestFilter[] = [];
  if (texts.status !== undefined) filters.push(statusFilter(texts.status));
  for (const [name, textOf] of Object.entries(TEXT_FILTERS)) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of a constant
    const wanted = texts[name as TextFilter];
    if (wanted === undefined) continue;
    const patterns = partsOf(wanted).map(pattern);
    filters.push((fields) => {
      const text = textOf(fields);
      const last = name === 'route' ? text.slice(text.lastIndexOf('/') + 1) : text;
      return patterns.some((each) => each.test(text) || each.test(last));
    });
  }
  return (fields) => filters.every((filter) => filter(fields));
}

function statusFilter(text: string): RequestFilter {
  const conditions = partsOf(text).map((part): RequestFilter => {
    if (part === 'error') return (fields) => outcomeOfFields(fields).outcome === 'bad';
    if (!/^[1-5](?:\d\d|xx)$/.test(part)) throw new InvalidStatusFilter(part);
    const digits = part.replace('xx', '');
    return (fields) => String(statusOf(fields) ?? '').startsWith(digits);
  });
  if (conditions.length === 0) throw new InvalidStatusFilter(text);
  return (fields) => conditions.some((condition) => condition(fields));
}

const partsOf = (text: string): string[] =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');

/** `tools*` as an expression that ignores case. */
function pattern(text: string): RegExp {
  const parts = text.split(/\*+/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 'is');
}
