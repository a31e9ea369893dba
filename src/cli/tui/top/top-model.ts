import { outcomeOfFields } from '../../../core/outcome.ts';
import { quantile } from '../../../core/render/figures.ts';
import {
  costOf,
  durationOf,
  type FinishedRequest,
  fieldText,
  inputTokensOf,
  latencyOf,
  modelOf,
  outputTokensOf,
  type RequestFields,
  routeOf,
  sessionOf,
  targetOf,
  toolOf,
  userOf,
} from '../../../core/requests/finished.ts';
import type { TopView } from './top-store.ts';

// What the screen of `agctl top` counts. Pure functions of what the gateway has sent.

/** A row of the list of requests: a finished request, or one in flight. */
export interface TopRow {
  /** The same as long as the request is on the screen. */
  readonly key: string;
  readonly isOpen: boolean;
  /** When it finished or, in flight, arrived; ms since 1970 by the gateway's clock. */
  readonly at: number;
  /** Duration so far, in ms; undefined if unknown. */
  readonly took: number | undefined;
  readonly fields: RequestFields;
  readonly request: FinishedRequest | undefined;
}

/** What the requests are grouped by, with the name of a request's group; empty for none. */
export const GROUPS = {
  routes: routeOf,
  targets: targetOf,
  tools: (fields: RequestFields): string => {
    const [tool, target] = [toolOf(fields), targetOf(fields)];
    return tool === '' || target === '' ? tool : `${tool} on ${target}`;
  },
  models: modelOf,
  users: userOf,
  sessions: sessionOf,
} as const;
export type GroupKind = keyof typeof GROUPS;
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of a constant
export const GROUP_KINDS = Object.keys(GROUPS) as readonly GroupKind[];

export interface Figures {
  readonly requests: number;
  readonly errors: number;
  /** Requests per second. */
  readonly rate: number;
  /** In ms; undefined without requests. */
  readonly p50: number | undefined;
  readonly p99: number | undefined;
  readonly input: number;
  readonly output: number;
  /** US dollars; undefined if no request had a price. */
  readonly cost: number | undefined;
}

export type Group = Figures & { readonly name: string };

/** @param seconds the time in which the requests finished */
export function figuresOf(requests: readonly FinishedRequest[], seconds: number): Figures {
  const durations: number[] = [];
  let [errors, input, output] = [0, 0, 0];
  let cost: number | undefined;
  for (const { fields } of requests) {
    const took = latencyOf(fields);
    if (took !== undefined) durations.push(took);
    if (outcomeOfFields(fields).outcome === 'bad') errors += 1;
    input += inputTokensOf(fields) ?? 0;
    output += outputTokensOf(fields) ?? 0;
    const price = costOf(fields);
    if (price !== undefined) cost = (cost ?? 0) + price;
  }
  durations.sort((a, b) => a - b);
  return {
    requests: requests.length,
    errors,
    rate: requests.length / Math.max(1, seconds),
    p50: quantile(durations, 0.5),
    p99: quantile(durations, 0.99),
    input,
    output,
    cost,
  };
}

/** Figures by group, without requests that belong to none. */
export function groupsOf(requests: readonly FinishedRequest[], kind: GroupKind, seconds: number): Group[] {
  const nameOf = GROUPS[kind];
  const groups = Map.groupBy(requests, ({ fields }) => nameOf(fields));
  groups.delete('');
  return [...groups].map(([name, own]) => ({ name, ...figuresOf(own, seconds) }));
}

/** Windows of the figures, in seconds. */
export const WINDOWS: readonly number[] = [60, 300, 3600];

/** The requests that finished in the last `window` seconds, and for how many of these requests are known. */
export function inWindow(
  requests: readonly FinishedRequest[],
  window: number,
  now: number,
  completeSince: number,
): { readonly requests: readonly FinishedRequest[]; readonly seconds: number } {
  const from = now - window * 1000;
  const seconds = Math.min(window, Math.max(1, (now - completeSince) / 1000));
  return { requests: requests.filter(({ at }) => at >= from), seconds };
}

const BARS = '▁▂▃▄▅▆▇█';

/** Requests over the last `window` seconds as bars, the newest at the right; a blank where none finished. */
export function sparkline(
  requests: readonly FinishedRequest[],
  window: number,
  now: number,
  width: number,
): string {
  const counts = Array.from({ length: width }, () => 0);
  for (const { at } of requests) {
    const index = width - 1 - Math.floor(((now - at) / (window * 1000)) * width);
    const slot = Math.min(width - 1, index);
    if (slot >= 0) counts[slot] = (counts[slot] ?? 0) + 1;
  }
  const most = Math.max(1, ...counts);
  return counts
    .map((count) => (count === 0 ? ' ' : BARS[Math.ceil((count / most) * BARS.length) - 1]))
    .join('');
}

/** Which requests the list has. A stream on which an MCP client listens is open as long as its session. */
export type Shown = 'all' | 'live' | 'finished';

/** The rows of the list: requests in flight first, then finished ones, each newest first. */
export function rowsOf({ requests, open }: TopView, shown: Shown, now: number): TopRow[] {
  const live = open
    .filter(({ fields }) => shown === 'live' || !isListening(fields))
    .map(
      ({ key, startedAt, fields }): TopRow => ({
        key,
        isOpen: true,
        at: startedAt,
        took: Math.max(0, now - startedAt),
        fields,
        request: undefined,
      }),
    )
    .reverse();
  if (shown === 'live') return live;
  const finished = requests.map(
    (request): TopRow => ({
      key: `${request.at}-${request.id}`,
      isOpen: false,
      at: request.at,
      took: durationOf(request.fields),
      fields: request.fields,
      request,
    }),
  );
  finished.reverse();
  return shown === 'finished' ? finished : [...live, ...finished];
}

const isListening = (fields: RequestFields): boolean =>
  fieldText(fields, 'http.method') === 'GET' && fieldText(fields, 'protocol') === 'mcp';
