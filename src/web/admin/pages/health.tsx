import type { ReactNode } from 'react';
import type { Overview } from '../../../core/overview.ts';
import { count, counted, duration, time } from '../../shared/format.ts';
import { Problem } from '../../shared/problem.tsx';
import { Link } from '../../shared/router.tsx';
import { visible } from '../../shared/visible.ts';
import { WithCode } from '../../shared/with-code.tsx';
import { MINUTE, type Now, providersOf, type Services, targetsOf, useServices } from '../health/services.ts';
import { Strip } from '../health/strip.tsx';
import { useOverview } from '../model/overview.ts';
import { useRequests } from '../model/requests.ts';
import { PeriodSelect, usePeriod } from '../parts/period-select.tsx';

/** Whether the servers and providers behind the gateway work, now and before, and when certificates expire. */
export function Health(): ReactNode {
  const { data, error, reload } = useOverview();
  const { entries } = useRequests();
  const isRecording = data?.isRecording === true;
  // No period needs a database: the gateway counts calls itself.
  const chosen = usePeriod(entries, true, MINUTE);
  const targets = useServices('target', chosen, entries, isRecording);
  const providers = useServices('provider', chosen, entries, isRecording);
  if (data === undefined)
    return error === undefined ? (
      <p className="quiet">Loading …</p>
    ) : (
      <Problem title="The state of the gateway could not be read" error={error} retry={reload} />
    );
  const { from } = chosen.period;
  return (
    <>
      <PeriodSelect chosen={chosen}>
        <span className="quiet">
          {sourceOf(targets.since, chosen.period.from, isRecording && chosen.step !== MINUTE)}
        </span>
      </PeriodSelect>
      <ServiceTable
        title="MCP targets"
        filter="mcp.target"
        rows={targetsOf(data)}
        services={targets}
        from={from}
      />
      <ServiceTable
        title="Providers of models"
        filter="gen_ai.provider.name"
        rows={providersOf(data)}
        services={providers}
        from={from}
        hasFailovers
      />
      <Legend />
      <Certificates certificates={data.certificates} />
    </>
  );
}

/** Where the figures come from, and what they do not have. */
function sourceOf(since: number | undefined, from: number, isRecording: boolean): string {
  if (since === undefined) return 'From the requests that this page knows.';
  if (since <= from) return 'As the gateway has counted.';
  const start = time(new Date(since).toISOString());
  return isRecording
    ? `Calls and errors from the database; latency and failovers since the gateway's start, ${start}.`
    : `Since the gateway's start, ${start}.`;
}

/** What the fields of `Strip` mean. */
function Legend(): ReactNode {
  return (
    <ul className="strip-legend quiet" aria-label="Over time">
      {[
        ['none', 'no calls'],
        ['up', 'no errors'],
        ['part', 'errors'],
        ['down', 'half of the calls or more are errors'],
      ].map(([tone, text]) => (
        <li key={tone}>
          <span className="strip" aria-hidden="true">
            <span className={tone} />
          </span>{' '}
          {text}
        </li>
      ))}
    </ul>
  );
}

const STATES: Readonly<Record<Now['state'], readonly [mark: string, tone: string]>> = {
  ok: ['✓', 'good'],
  failing: ['✗', 'bad'],
  connecting: ['…', 'quiet'],
  idle: ['○', 'quiet'],
};

function ServiceTable({
  title,
  filter,
  rows,
  services,
  from,
  hasFailovers = false,
}: {
  readonly title: string;
  /** The field of the access log that names it. */
  readonly filter: string;
  readonly rows: readonly Now[];
  readonly services: Services;
  readonly from: number;
  readonly hasFailovers?: boolean;
}): ReactNode {
  if (rows.length === 0) return null;
  const columns = ['Calls', 'Errors', 'p95', ...(hasFailovers ? ['Failovers'] : [])];
  return (
    <section className="panel" aria-label={title}>
      <h2>{title}</h2>
      <div className="scroll">
        <table className="figures">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Now</th>
              <th scope="col">Over time</th>
              {columns.map((name) => (
                <th key={name} scope="col" className="number">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <ServiceRow
                key={row.name}
                row={row}
                filter={filter}
                services={services}
                from={from}
                columns={columns}
              />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function ServiceRow({
  row: { name, state, about, problem, models },
  filter,
  services,
  from,
  columns,
}: {
  readonly row: Now;
  readonly filter: string;
  readonly services: Services;
  readonly from: number;
  readonly columns: readonly string[];
}): ReactNode {
  const { calls, errors, p95, buckets } = services.of(name);
  const failovers = models.reduce((sum, model) => sum + (services.failovers.get(model) ?? 0), 0);
  // What answers now may have failed in the period: the word agrees with the figures beside it.
  const [mark, tone, word] =
    state === 'ok' && errors > 0
      ? (['!', 'warn', 'answers, with errors'] as const)
      : [...STATES[state], state];
  const cells: Readonly<Record<string, ReactNode>> = {
    Calls: count(calls),
    Errors: errors === 0 ? '0' : <span className="bad">✗ {count(errors)}</span>,
    p95: p95 === undefined ? '–' : duration(p95),
    Failovers: failovers === 0 ? '0' : <span className="warn">! {count(failovers)}</span>,
  };
  return (
    <tr>
      <th scope="row">
        <Link to="/requests" query={{ text: `${filter}=${name}` }}>
          {visible(name)}
        </Link>{' '}
        {about === '' ? null : <code className="quiet">{visible(about)}</code>}
      </th>
      <td className="any" data-name="Now">
        <div>
          <span className={tone}>
            {mark} {word}
          </span>
          {problem === undefined ? null : (
            <div className="bad">
              <WithCode text={problem} />
            </div>
          )}
        </div>
      </td>
      <td data-name="Over time">
        <Strip buckets={buckets} from={from} step={services.step} />
      </td>
      {columns.map((column) => (
        <td key={column} className="number" data-name={column}>
          {cells[column]}
        </td>
      ))}
    </tr>
  );
}

const DAY = 86_400_000;
/** Renewals that work are done by then, in ms. */
const SOON = 14 * DAY;

/** Certificates of listeners, and client certificates for upstreams, by when they expire. */
function Certificates({ certificates }: Pick<Overview, 'certificates'>): ReactNode {
  if (certificates.length === 0) return null;
  return (
    <section className="panel" aria-label="Certificates">
      <h2>Certificates</h2>
      <div className="scroll">
        <table className="cards">
          <thead>
            <tr>
              {['File', 'Expires', 'Left'].map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {certificates.map(({ file, expires, isCurrent }) => (
              <tr key={file}>
                <th scope="row">
                  {visible(file)}
                  {isCurrent ? null : (
                    <div className="bad">
                      ✗ the file could not be read again: the certificate before it is in use
                    </div>
                  )}
                </th>
                <td className="short" data-name="Expires">
                  {time(expires)}
                </td>
                <td className="short" data-name="Left">
                  <Left expires={Date.parse(expires)} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Left({ expires }: { readonly expires: number }): ReactNode {
  const left = expires - Date.now();
  if (left <= 0) return <span className="bad">✗ expired</span>;
  const text = counted(Math.floor(left / DAY), 'day');
  return left < SOON ? <span className="warn">! {text}</span> : <span className="good">✓ {text}</span>;
}
