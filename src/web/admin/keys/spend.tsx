import { type ReactNode, useMemo, useState } from 'react';
import { Chart } from '../../shared/chart.tsx';
import { Select } from '../../shared/form.tsx';
import { count } from '../../shared/format.ts';
import { Problem } from '../../shared/problem.tsx';
import { changeQuery, navigate, useLocation } from '../../shared/router.tsx';
import { useLoaded } from '../../shared/use-loaded.ts';
import { visible } from '../../shared/visible.ts';
import { dollarAxis, dollars } from '../model/money.ts';
import { DAY, recordedBuckets, type Usage } from '../model/recorded.ts';
import { Fact } from '../parts/fact.tsx';
import { type Month, monthOf, projected } from './month.ts';

const EVERY = 30_000;
/** Rows of the table; the sums above it are of all. */
const SHOWN = 100;

/** What spend is shown by, and what is said of calls that have none of it. */
const BY = {
  key: { label: 'key', column: 'Key', none: 'calls without a key' },
  group: { label: 'team', column: 'Team', none: 'callers without a team' },
  model: { label: 'model', column: 'Model', none: 'requests of no model' },
} as const;
type By = keyof typeof BY;

const isBy = (name: string): name is By => Object.hasOwn(BY, name);

/** What this month has cost so far, by day, and what it will cost at this rate. */
export function Spend(): ReactNode {
  const { query } = useLocation();
  const asked = query.get('by') ?? '';
  const by = isBy(asked) ? asked : 'key';
  const [chosen, setChosen] = useState<string>();
  const month = monthOf(Date.now());
  return (
    <section className="panel" aria-labelledby="spend">
      <h2 id="spend">Spend in {month.name}</h2>
      <div className="row bar">
        <Select
          label="By"
          value={by}
          values={Object.entries(BY).map(([name, { label }]) => [name, label])}
          choose={(next) => {
            changeQuery(query, { by: next });
            setChosen(undefined);
          }}
        />
        {chosen === undefined ? null : (
          <button type="button" onClick={() => setChosen(undefined)}>
            {BY[by].label} {nameOf(by, chosen)} <span aria-hidden="true">×</span>
            <span className="unseen">, show all</span>
          </button>
        )}
        <span className="quiet">Days are those of UTC.</span>
      </div>
      {/* By their keys: what was loaded for another choice is not shown under the name of this one. */}
      <Days key={`${by} ${chosen}`} by={by} chosen={chosen} month={month} />
      <Groups key={by} by={by} month={month} choose={setChosen} />
    </section>
  );
}

interface ByProps {
  readonly by: By;
  readonly month: Month;
}

function Days({ by, chosen, month }: ByProps & { readonly chosen: string | undefined }): ReactNode {
  const { data, error, reload } = useLoaded<Usage>(usageOf('day', month, by, chosen), EVERY);
  const days = useMemo(
    () => (data === undefined || chosen !== '' ? data : withoutName(data, by)),
    [data, chosen, by],
  );
  if (days === undefined)
    return error === undefined ? (
      <p className="quiet">Loading …</p>
    ) : (
      <Problem title="The spend could not be read" error={error} retry={reload} />
    );
  return (
    <>
      <Sums usage={days} month={month} />
      <DailyCost usage={days} month={month} />
    </>
  );
}

function Groups({ by, month, choose }: ByProps & { readonly choose: (name: string) => void }): ReactNode {
  const { data } = useLoaded<Usage & { readonly isCut?: boolean }>(usageOf(by, month), EVERY);
  if (data === undefined) return null;
  return (
    <>
      <SpendTable usage={data} by={by} month={month} choose={choose} />
      {data.rows.length > SHOWN || data.isCut === true ? (
        <p className="quiet">
          The table has the {count(Math.min(SHOWN, data.rows.length))} that cost most, the sums have all.
        </p>
      ) : null}
    </>
  );
}

/** Address of the sums of a month; `chosen` may be empty, for calls that have no key, for example. */
function usageOf(by: string, month: Month, filter?: By, chosen?: string): string {
  const query = new URLSearchParams({
    by,
    from: new Date(month.from).toISOString(),
    to: new Date(month.to).toISOString(),
  });
  // The API has no filter for what is absent: the sums of those are found among all.
  if (filter !== undefined && chosen !== undefined && chosen !== '') query.set(filter, chosen);
  if (filter !== undefined && chosen === '') query.set('by', `day,${filter}`);
  return `/api/usage?${query}`;
}

/** The sums of calls that have no key, no team or no model. */
function withoutName({ rows }: Usage, by: By): Usage {
  const own = rows.filter(({ group }) => (group[by] ?? '') === '');
  const sum = (pick: (row: Usage['total']) => number): number => own.reduce((all, row) => all + pick(row), 0);
  return {
    rows: own,
    total: {
      requests: sum(({ requests }) => requests),
      errors: sum(({ errors }) => errors),
      refused: sum(({ refused }) => refused),
      inputTokens: sum(({ inputTokens }) => inputTokens),
      outputTokens: sum(({ outputTokens }) => outputTokens),
      costUsd: String(sum(({ costUsd }) => Number(costUsd))),
    },
  };
}

const nameOf = (by: By, name: string): string => (name === '' ? BY[by].none : visible(name));

function Sums({ usage, month }: { readonly usage: Usage; readonly month: Month }): ReactNode {
  const { costUsd, inputTokens, outputTokens, requests } = usage.total;
  const cost = Number(costUsd);
  return (
    <dl className="facts tiles" aria-label="Sums of the month">
      <Fact name="Cost so far">{dollars(cost)}</Fact>
      <Fact name="Month at this rate">{projectedText(cost, month)}</Fact>
      <Fact name="Tokens">{count(inputTokens + outputTokens)}</Fact>
      <Fact name="Requests">{count(requests)}</Fact>
    </dl>
  );
}

/** A dash in the first hours of a month, which tell nothing of the rest. */
function projectedText(cost: number, month: Month): string {
  const value = projected(cost, month);
  return value === undefined ? '–' : dollars(value);
}

function DailyCost({ usage, month }: { readonly usage: Usage; readonly month: Month }): ReactNode {
  const values = useMemo(
    () => recordedBuckets(usage, { from: month.from, to: month.end }, DAY).map(({ cost }) => cost),
    [usage, month.from, month.end],
  );
  if (values.every((value) => value === undefined)) return null;
  return (
    <Chart
      title="Cost per day"
      data={{
        from: month.from,
        step: DAY,
        kind: 'bars',
        show: dollars,
        showAxis: dollarAxis,
        series: [{ name: 'US dollars', tone: 'main', values }],
      }}
      zoom={(from, to) =>
        navigate('/usage', {
          span: '30d',
          from: new Date(from).toISOString(),
          to: new Date(to).toISOString(),
        })
      }
    />
  );
}

function SpendTable({
  usage: { rows },
  by,
  month,
  choose,
}: {
  readonly usage: Usage;
  readonly by: By;
  readonly month: Month;
  readonly choose: (name: string) => void;
}): ReactNode {
  if (rows.length === 0) return <p className="quiet">Nothing was recorded in this month.</p>;
  return (
    <div className="scroll">
      <table className="figures">
        <thead>
          <tr>
            <th scope="col">{BY[by].column}</th>
            {['Cost', 'At this rate', 'Tokens', 'Requests'].map((name) => (
              <th key={name} scope="col" className="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, SHOWN).map(({ group, costUsd, inputTokens, outputTokens, requests }) => {
            const name = group[by] ?? '';
            return (
              <tr key={name}>
                <th scope="row">
                  <button type="button" className="plain" onClick={() => choose(name)}>
                    {name === '' ? <em>{nameOf(by, name)}</em> : nameOf(by, name)}
                  </button>
                </th>
                <td className="number" data-name="Cost">
                  {dollars(Number(costUsd))}
                </td>
                <td className="number" data-name="At this rate">
                  {projectedText(Number(costUsd), month)}
                </td>
                <td className="number" data-name="Tokens">
                  {count(inputTokens + outputTokens)}
                </td>
                <td className="number" data-name="Requests">
                  {count(requests)}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
