import { type ReactNode, useEffect, useMemo, useState } from 'react';
import { Chart } from '../../shared/chart.tsx';
import { clock, count } from '../../shared/format.ts';
import { Link } from '../../shared/router.tsx';
import { useLoaded } from '../../shared/use-loaded.ts';
import { field, modelOf } from '../model/fields.ts';
import { commonPrefix, readMetrics, total } from '../model/metrics.ts';
import { useRequests } from '../model/requests.ts';
import { bucketsOf, type Figures, figuresBy, figuresOf } from '../model/usage.ts';
import { Fact } from '../parts/fact.tsx';
import { NoRequests } from '../parts/no-requests.tsx';

const MINUTE = 60_000;
const SPANS = [
  { label: '15 min', span: 15 * MINUTE },
  { label: '1 h', span: 60 * MINUTE },
  { label: '24 h', span: 24 * 60 * MINUTE },
] as const;
/** How often the time range and the counters are updated, in ms. */
const EVERY = 10_000;

/** Tokens, cost, time and errors: over time, by model and by route. */
export function Usage(): ReactNode {
  const { entries } = useRequests();
  const [span, setSpan] = useState<number>(SPANS[0].span);
  const now = useNow(entries[0]?.at ?? 0);
  const recent = useMemo(() => entries.filter(({ at }) => at > now - span), [entries, now, span]);
  return (
    <>
      <SinceStart />
      <fieldset className="row bar">
        <legend className="unseen">Time shown</legend>
        {SPANS.map(({ label, span: value }) => (
          <label key={label} className="choice">
            <input type="radio" name="span" checked={span === value} onChange={() => setSpan(value)} />{' '}
            {label}
          </label>
        ))}
        <span className="quiet">
          {count(recent.length)} requests in this period. The gateway keeps only the most recent ones; this
          page adds those that arrive while it is open.
        </span>
      </fieldset>
      {entries.length === 0 ? (
        <NoRequests />
      ) : (
        <>
          <Charts entries={recent} span={span} now={now} />
          <FigureTable title="By model" column="Model" filter="model" rows={figuresBy(recent, modelOf)} />
          <FigureTable
            title="By route"
            column="Route"
            filter="route"
            rows={figuresBy(recent, (entry) => field(entry, 'route'))}
          />
        </>
      )}
    </>
  );
}

/** The current time, updated at intervals, and never older than the newest request. */
function useNow(newest: number): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), EVERY);
    return () => clearInterval(timer);
  }, []);
  return Math.max(now, newest);
}

/** The gateway's own counters since its start. */
function SinceStart(): ReactNode {
  const { data } = useLoaded<string>('/metrics', EVERY);
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
        <Fact name="Requests since start">{count(sum('requests_total'))}</Fact>
        <Fact name="Input tokens">{tokens('input')}</Fact>
        <Fact name="Output tokens">{tokens('output')}</Fact>
        <Fact name="Cost">{isUnpriced ? 'not known' : dollars(sum('gen_ai_client_cost_usd_total'))}</Fact>
        <Fact name="MCP requests">{count(sum('mcp_requests_total'))}</Fact>
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

function Charts({
  entries,
  span,
  now,
}: {
  readonly entries: Parameters<typeof figuresOf>[0];
  readonly span: number;
  readonly now: number;
}): ReactNode {
  const buckets = useMemo(() => bucketsOf(entries, span, now), [entries, span, now]);
  const labels = buckets.map(({ from }) => clock(from));
  const figures = useMemo(() => buckets.map((bucket) => figuresOf(bucket.entries)), [buckets]);
  const of = (pick: (one: Figures) => number | undefined): (number | undefined)[] => figures.map(pick);
  return (
    <div className="charts">
      <Chart
        title="Requests"
        kind="bars"
        labels={labels}
        show={whole}
        series={[
          { name: 'answered', values: of(({ requests, errors }) => requests - errors) },
          { name: 'errors', values: of(({ errors }) => errors) },
        ]}
      />
      <Chart
        title="Latency"
        kind="lines"
        labels={labels}
        show={milliseconds}
        series={[
          { name: 'p50', values: of(({ p50 }) => p50) },
          { name: 'p95', values: of(({ p95 }) => p95) },
        ]}
      />
      <Chart
        title="Tokens"
        kind="bars"
        labels={labels}
        show={whole}
        series={[
          { name: 'input', values: of(({ input }) => input) },
          { name: 'output', values: of(({ output }) => output) },
        ]}
      />
      <Chart
        title="Cost"
        kind="bars"
        labels={labels}
        show={dollars}
        series={[{ name: 'US dollars', values: of(({ cost }) => cost) }]}
      />
    </div>
  );
}

const whole = (value: number): string => count(Math.round(value));
const milliseconds = (value: number): string => `${whole(value)} ms`;
/** Prices of single calls are fractions of a cent. */
const dollars = (value: number): string =>
  value === 0 ? '$0' : `$${value >= 1 ? value.toFixed(2) : value.toPrecision(2)}`;

function FigureTable({
  title,
  column,
  filter,
  rows,
}: {
  readonly title: string;
  readonly column: string;
  readonly filter: 'model' | 'route';
  readonly rows: readonly (Figures & { readonly name: string })[];
}): ReactNode {
  if (rows.length === 0) return null;
  return (
    <section className="panel">
      <h2>{title}</h2>
      <div className="scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">{column}</th>
              {['Requests', 'Errors', 'Input', 'Output', 'Cost', 'p50', 'p95'].map((name) => (
                <th key={name} scope="col" className="number">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ name, requests, errors, input, output, cost, p50, p95 }) => (
              <tr key={name}>
                <th scope="row">
                  <Link to="/requests" query={{ [filter]: name }}>
                    {name}
                  </Link>
                </th>
                <td className="number">{whole(requests)}</td>
                <td className={errors === 0 ? 'number' : 'number bad'}>
                  {errors === 0 ? '0' : `✗ ${whole(errors)}`}
                </td>
                <td className="number">{whole(input)}</td>
                <td className="number">{whole(output)}</td>
                <td className="number">{cost === undefined ? '–' : dollars(cost)}</td>
                <td className="number">{p50 === undefined ? '–' : milliseconds(p50)}</td>
                <td className="number">{p95 === undefined ? '–' : milliseconds(p95)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
