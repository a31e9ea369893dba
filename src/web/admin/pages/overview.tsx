import { type ReactNode, useMemo } from 'react';
import { LIMITS } from '../../../core/limits.ts';
import type { Overview as Data } from '../../../core/overview.ts';
import { clock, compact, count, counted, duration, time } from '../../shared/format.ts';
import { Problem } from '../../shared/problem.tsx';
import { Link } from '../../shared/router.tsx';
import { visible } from '../../shared/visible.ts';
import { isError, lineOf, subjectOf, targetOf, tookText } from '../model/fields.ts';
import { dollars } from '../model/money.ts';
import { uptimeText, useOverview } from '../model/overview.ts';
import { type Entry, useRequests } from '../model/requests.ts';
import { Fact } from '../parts/fact.tsx';
import { NoRequests } from '../parts/no-requests.tsx';
import { NotRead } from '../parts/not-read.tsx';
import { PeriodSelect, usePeriod } from '../parts/period-select.tsx';
import { Problems, ReloadFailure } from '../parts/problem-lists.tsx';
import { Refusals } from '../parts/refusals.tsx';
import { Status } from '../parts/status.tsx';
import { TimeCharts } from '../parts/time-charts.tsx';
import { RecordedToolCalls } from '../parts/tool-calls.tsx';
import { Topology } from '../parts/topology.tsx';
import { type PeriodFigures, useFigures } from '../parts/use-figures.ts';

const SHOWN = 20;

/** Requests among which errors are counted for the words on problems. */
const NEWEST = 1_000;

/** What is happening, what is wrong, and what is served. */
export function Overview(): ReactNode {
  const { data, error, reload } = useOverview();
  const { entries } = useRequests();
  const errors = useMemo(() => entries.slice(0, NEWEST).filter(isError).length, [entries]);
  return (
    <>
      {data === undefined && error !== undefined ? (
        <Problem
          title="The state of the gateway could not be read"
          error={error}
          command="agctl check"
          retry={reload}
        />
      ) : null}
      <Activity overview={data}>
        {data === undefined ? null : (
          <>
            <ReloadFailure overview={data} />
            <Problems overview={data} errors={errors} />
          </>
        )}
      </Activity>
      <div className="two">
        {data === undefined ? <p className="quiet">Loading …</p> : <Served overview={data} />}
        <Recent />
      </div>
    </>
  );
}

/** Figures of the recent requests, then what is wrong, then the figures over time. */
function Activity({
  overview,
  children,
}: {
  readonly overview: Data | undefined;
  /** Problems, whether or not there have been requests. */
  readonly children: ReactNode;
}): ReactNode {
  const { entries } = useRequests();
  const isRecording = overview?.isRecording === true;
  const chosen = usePeriod(entries, isRecording);
  const figures = useFigures(chosen, entries);
  if (entries.length === 0 && !isRecording) return children;
  return (
    <>
      <section aria-label="Activity">
        <PeriodSelect chosen={chosen} />
        <NotRead figures={figures} />
        <Part figures={figures} />
        <Tiles figures={figures} overview={overview} />
      </section>
      {children}
      <section aria-label="Over time">
        <TimeCharts figures={figures} zoom={chosen.zoom} />
        <Refusals figures={figures} />
      </section>
    </>
  );
}

/**
 * The oldest request that the page knows, if it has not all of the period: a gateway keeps its last ones, which a page gets when it is
 * opened.
 */
function oldestOfPart({ period, isRecorded, entries }: PeriodFigures): Entry | undefined {
  const oldest = entries.at(-1);
  const isPart = !isRecorded && entries.length >= LIMITS.recentRequests;
  return isPart && oldest !== undefined && oldest.at > period.from ? oldest : undefined;
}

function Part({ figures }: { readonly figures: PeriodFigures }): ReactNode {
  const oldest = oldestOfPart(figures);
  if (oldest === undefined) return null;
  return (
    <p className="quiet">
      Of the last {count(figures.entries.length)} requests of this gateway, which begin at {time(oldest.time)}
      : it keeps no earlier ones. Longer periods are read from the database, if there is one.
    </p>
  );
}

function Tiles({
  figures,
  overview,
}: {
  readonly figures: PeriodFigures;
  readonly overview: Data | undefined;
}): ReactNode {
  const { requests, errors, refused, p95, input, output, cost } = figures.total;
  const seconds = secondsOf(figures, overview);
  return (
    <dl className="facts tiles">
      <Fact name="Requests">
        {count(requests)} <small className="quiet">{rate(requests / seconds)}</small>
      </Fact>
      <Fact name="Errors">
        <span className={errors === 0 ? '' : 'bad'}>
          {errors === 0 ? '0' : `✗ ${count(errors)}`}{' '}
          <small className="quiet">{shareText(errors, requests)}</small>
        </span>
      </Fact>
      <Fact name="Refused">
        <span className={refused === 0 ? '' : 'warn'}>
          {refused === 0 ? '0' : `! ${count(refused)}`}{' '}
          <small className="quiet">{shareText(refused, requests)}</small>
        </span>
      </Fact>
      {figures.isRecorded ? null : <Fact name="Latency p95">{p95 === undefined ? '–' : duration(p95)}</Fact>}
      {input + output === 0 ? null : (
        <Fact name="Tokens">
          {compact(input + output)}{' '}
          <small className="quiet">
            {count(input)} in, {count(output)} out
          </small>
        </Fact>
      )}
      {cost === undefined ? null : <Fact name="Cost">{dollars(cost)}</Fact>}
      <Fact name="Open requests">{overview?.openRequests ?? '–'}</Fact>
    </dl>
  );
}

/**
 * The part of a period of which requests are known: those before the start only if they were recorded, or if the page has seen them. The
 * end of a period may be ahead.
 */
function secondsOf(figures: PeriodFigures, overview: Data | undefined): number {
  const { period, isRecorded, entries } = figures;
  const { from, to } = period;
  if (overview === undefined) return (to - from) / 1000;
  // By the clock of the gateway, as the times of requests.
  const start = Date.parse(overview.startedAt);
  const now = start + overview.uptimeSeconds * 1000;
  const known = oldestOfPart(figures)?.at ?? Math.min(start, entries.at(-1)?.at ?? start);
  const first = isRecorded ? from : Math.max(from, known);
  return Math.max(1000, Math.min(to, now) - first) / 1000;
}

/** `12 %`, `0.4 %` */
function shareText(part: number, all: number): string {
  const share = all === 0 ? 0 : (part / all) * 100;
  return `${share === 0 || share >= 1 ? share.toFixed(0) : share.toFixed(1)} %`;
}

/** `3.2 per s`, `4 per min`, `0.7 per h` */
function rate(perSecond: number): string {
  const [value, unit] =
    perSecond >= 1
      ? [perSecond, 's']
      : perSecond * 60 >= 0.1 || perSecond === 0
        ? [perSecond * 60, 'min']
        : [perSecond * 3600, 'h'];
  return `${count(Math.round(value * 10) / 10)} per ${unit}`;
}

/** The running program, and its gateways. */
function Served({ overview }: { readonly overview: Data }): ReactNode {
  const { version, machine, uptimeSeconds, config, logLevel } = overview;
  return (
    <div>
      <h2>Gateways</h2>
      <p className="quiet">
        agctl {version} on {visible(machine)}, up {uptimeText(uptimeSeconds)}, configuration{' '}
        <Link to="/config">{visible(config)}</Link>, log level <code>{logLevel}</code>
      </p>
      <WhatFiguresAre />
      <RecordedToolCalls isRecording={overview.isRecording}>
        <Topology overview={overview} />
      </RecordedToolCalls>
    </div>
  );
}

/** Each kind of figure below has a period of its own. Calls of tools that are recorded say theirs. */
function WhatFiguresAre(): ReactNode {
  const { entries } = useRequests();
  const oldest = entries.at(-1);
  if (oldest === undefined) return null;
  return (
    <p className="quiet">
      Routes and tools: of the last {counted(entries.length, 'request')}, since {time(oldest.time)}. Models:
      since the start. Sessions and connections: open now.
    </p>
  );
}

function Recent(): ReactNode {
  const { entries } = useRequests();
  return (
    <section aria-labelledby="recent">
      <h2 id="recent">Recent requests</h2>
      {entries.length === 0 ? (
        <NoRequests />
      ) : (
        <>
          <div className="panel scroll">
            <table>
              <thead>
                <tr>
                  <th scope="col">Time</th>
                  <th scope="col">Status</th>
                  <th scope="col">Request</th>
                  <th scope="col" className="number">
                    Took
                  </th>
                </tr>
              </thead>
              <tbody>
                {entries.slice(0, SHOWN).map((entry) => (
                  <tr key={entry.key}>
                    <td className="short">{clock(entry.at)}</td>
                    <td className="short">
                      <Status entry={entry} />
                    </td>
                    <td className="any">
                      <About entry={entry} />
                    </td>
                    <td className="number">{tookText(entry)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <p>
            <Link to="/requests">All requests</Link>
          </p>
        </>
      )}
    </section>
  );
}

/** What a request asked for, and of whom; its path if it names nothing. */
function About({ entry }: { readonly entry: Entry }): ReactNode {
  const [subject, target] = [subjectOf(entry), targetOf(entry)];
  if (subject === '') return lineOf(entry);
  return (
    <>
      {subject} <span className="quiet">{target === '' ? lineOf(entry) : `· ${target}`}</span>
    </>
  );
}
