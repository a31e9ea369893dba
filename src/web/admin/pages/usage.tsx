import { type ReactNode, useMemo } from 'react';
import type { Overview } from '../../../core/overview.ts';
import { count, duration } from '../../shared/format.ts';
import { Problem } from '../../shared/problem.tsx';
import { Link } from '../../shared/router.tsx';
import { useLoaded } from '../../shared/use-loaded.ts';
import { visible } from '../../shared/visible.ts';
import { field, modelOf, routeOf, toolOf } from '../model/fields.ts';
import { commonPrefix, readMetrics, total } from '../model/metrics.ts';
import { dollars } from '../model/money.ts';
import { useOverview } from '../model/overview.ts';
import { OVERVIEW } from '../model/paths.ts';
import { type Group, HOUR, type Usage as Recorded, recordedBy, usagePath } from '../model/recorded.ts';
import { type Entry, useRequests } from '../model/requests.ts';
import { type RouteTitles, routeTitles } from '../model/route-titles.ts';
import { type Figures, figuresBy, type Period } from '../model/usage.ts';
import { Fact } from '../parts/fact.tsx';
import { NoRequests } from '../parts/no-requests.tsx';
import { NotRead } from '../parts/not-read.tsx';
import { PeriodSelect, usePeriod } from '../parts/period-select.tsx';
import { TimeCharts } from '../parts/time-charts.tsx';
import { EVERY as RECORDED_EVERY, useFigures } from '../parts/use-figures.ts';

/** How often the counters are updated, in ms. */
const EVERY = 10_000;

/** Tokens, cost, time and errors: over time, by model, tool, target and route. */
export function Usage(): ReactNode {
  const { entries } = useRequests();
  const { data: overview, error, reload } = useLoaded<Overview>(OVERVIEW);
  const isRecording = overview?.isRecording === true;
  const chosen = usePeriod(entries, isRecording);
  const titleOf = useMemo(() => routeTitles(overview), [overview]);
  const figures = useFigures(chosen, entries);
  const { entries: recent, isRecorded, total } = figures;
  // Until it is known whether there is a database, a long period would show the tables of the page's own requests and then replace them.
  if (overview === undefined)
    return error === undefined ? (
      <p className="quiet">Loading …</p>
    ) : (
      <Problem title="The state of the gateway could not be read" error={error} retry={reload} />
    );
  return (
    <>
      <SinceStart />
      <PeriodSelect chosen={chosen}>
        <span className="quiet">
          {count(total.requests)} requests
          {isRecorded
            ? ', from the database.'
            : '. The gateway keeps the most recent ones; this page adds those that arrive while it is open.'}
        </span>
      </PeriodSelect>
      <NotRead figures={figures} />
      {entries.length === 0 && !isRecorded ? (
        <NoRequests />
      ) : (
        <>
          <TimeCharts figures={figures} zoom={chosen.zoom} />
          {total.requests === 0 ? <p className="panel">There was no request in this period.</p> : null}
          <div className="tables">
            {isRecorded
              ? RECORDED_TABLES.map((table) => (
                  <RecordedTable key={table.title} table={table} period={chosen.period} />
                ))
              : TABLES.map((table) => (
                  <FigureTable
                    key={table.title}
                    table={table}
                    rows={figuresBy(recent, table.nameOf)}
                    titleOf={table.filter === 'route' ? titleOf : undefined}
                  />
                ))}
          </div>
        </>
      )}
    </>
  );
}

interface Table {
  readonly title: string;
  readonly column: string;
  /** The requests of a row are found by its name in this filter. */
  readonly filter: 'model' | 'route' | 'text';
  /** Whether tokens and cost mean something. */
  readonly isOfModels: boolean;
}

const TABLES: readonly (Table & { readonly nameOf: (entry: Entry) => string })[] = [
  { title: 'By model', column: 'Model', filter: 'model', nameOf: modelOf, isOfModels: true },
  { title: 'By tool', column: 'Tool', filter: 'text', nameOf: toolOf, isOfModels: false },
  {
    title: 'By target',
    column: 'MCP target',
    filter: 'text',
    nameOf: (entry) => field(entry, 'mcp.target'),
    isOfModels: false,
  },
  { title: 'By route', column: 'Route', filter: 'route', nameOf: routeOf, isOfModels: true },
];

const RECORDED_TABLES: readonly (Omit<Table, 'filter'> & { readonly by: Group })[] = [
  { title: 'By model', column: 'Model', by: 'model', isOfModels: true },
  { title: 'By tool', column: 'Tool', by: 'tool', isOfModels: false },
  { title: 'By target', column: 'MCP target', by: 'target', isOfModels: false },
  { title: 'By key', column: 'Key', by: 'key', isOfModels: true },
  { title: 'By user', column: 'User', by: 'user', isOfModels: true },
];

/** Length of a period as the record is searched: `6h`, `30d`. */
function sinceOf({ from }: Period): string {
  const hours = Math.max(1, Math.round((Date.now() - from) / HOUR));
  return hours > 24 ? `${Math.round(hours / 24)}d` : `${hours}h`;
}

function RecordedTable({
  table,
  period,
}: {
  readonly table: (typeof RECORDED_TABLES)[number];
  readonly period: Period;
}): ReactNode {
  const { data } = useLoaded<Recorded>(usagePath(table.by, period), RECORDED_EVERY);
  return data === undefined ? null : (
    <FigureTable
      table={table}
      rows={recordedBy(data, table.by)}
      recorded={{ by: table.by, since: sinceOf(period) }}
    />
  );
}

/** Requests of the pages themselves, if a gateway serves them (`ui`). */
const PAGES = { route: 'internal/ui' };

/** The gateway's own counters since its start. */
function SinceStart(): ReactNode {
  const { data } = useLoaded<string>('/api/metrics', EVERY);
  const { data: overview } = useOverview();
  const samples = useMemo(() => (data === undefined ? undefined : readMetrics(data)), [data]);
  if (samples === undefined) return null;
  const prefix = commonPrefix(samples);
  const sum = (name: string, labels?: Readonly<Record<string, string>>): number =>
    total(samples, prefix + name, labels);
  const tokens = (type: string): string =>
    count(sum('gen_ai_client_token_usage_sum', { gen_ai_token_type: type }));
  const lookups = (status: string): number => sum('cost_catalog_lookups_total', { status });
  const isUnpriced = lookups('NoCatalog') > 0 && lookups('Exact') === 0;
  return (
    <>
      <dl className="facts" aria-label="Since the gateway started">
        <Fact name="Requests since start">{count(sum('requests_total') - sum('requests_total', PAGES))}</Fact>
        <Fact name="Input tokens">{tokens('input')}</Fact>
        <Fact name="Output tokens">{tokens('output')}</Fact>
        <Fact name="Cost">{isUnpriced ? 'not known' : dollars(sum('gen_ai_client_cost_usd_total'))}</Fact>
        <Fact name="MCP requests">{count(sum('mcp_requests_total'))}</Fact>
        {overview === undefined ? null : <Fact name="Counted by">{visible(overview.machine)}</Fact>}
      </dl>
      {isUnpriced ? (
        <p className="panel">
          No prices are configured, so cost is not known. <code>agctl costs import</code> creates a price
          catalog from a public list of models; name it in{' '}
          <Link to="/config">
            <code>config.modelCatalog</code>
          </Link>
          , or write prices there.
        </p>
      ) : null}
    </>
  );
}

const whole = (value: number): string => count(Math.round(value));

function FigureTable({
  table: { title, column, filter = 'text', isOfModels },
  rows,
  recorded,
  titleOf,
}: {
  readonly table: Omit<Table, 'filter'> & Partial<Table>;
  readonly rows: readonly (Figures & { readonly name: string })[];
  /** Rows from the database link to its records, since requests of the access log may be gone; latency is not recorded. */
  readonly recorded?: { readonly by: Group; readonly since: string };
  readonly titleOf?: RouteTitles | undefined;
}): ReactNode {
  if (rows.length === 0) return null;
  return (
    <section className="panel">
      <h2>{title}</h2>
      <div className="scroll">
        <table className="figures">
          <thead>
            <tr>
              <th scope="col">{column}</th>
              {[
                ...['Requests', 'Errors', 'Refused'],
                ...(isOfModels ? ['Input', 'Output', 'Cost'] : []),
                ...(recorded === undefined ? ['p50', 'p95'] : []),
              ].map((name) => (
                <th key={name} scope="col" className="number">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ name, requests, errors, refused, input, output, cost, p50, p95 }) => (
              <tr key={name}>
                <th scope="row">
                  <Link
                    to={recorded === undefined ? '/requests' : '/conversations'}
                    query={
                      recorded === undefined
                        ? { [filter]: name }
                        : { [recorded.by]: name, since: recorded.since }
                    }
                  >
                    {titleOf?.(name) ?? visible(name)}
                  </Link>
                </th>
                <td className="number" data-name="Requests">
                  {whole(requests)}
                </td>
                <td className={errors === 0 ? 'number' : 'number bad'} data-name="Errors">
                  {errors === 0 ? '0' : `✗ ${whole(errors)}`}
                </td>
                <td className={refused === 0 ? 'number' : 'number warn'} data-name="Refused">
                  {refused === 0 ? '0' : `! ${whole(refused)}`}
                </td>
                {isOfModels ? (
                  <>
                    <td className="number" data-name="Input">
                      {whole(input)}
                    </td>
                    <td className="number" data-name="Output">
                      {whole(output)}
                    </td>
                    <td className="number" data-name="Cost">
                      {cost === undefined ? '–' : dollars(cost)}
                    </td>
                  </>
                ) : null}
                {recorded === undefined ? (
                  <>
                    <td className="number" data-name="p50">
                      {p50 === undefined ? '–' : duration(p50)}
                    </td>
                    <td className="number" data-name="p95">
                      {p95 === undefined ? '–' : duration(p95)}
                    </td>
                  </>
                ) : null}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
