import type { ReactNode } from 'react';
import type { Overview as Data, ProblemView } from '../../../core/overview.ts';
import { clock, count } from '../../shared/format.ts';
import { Problem } from '../../shared/problem.tsx';
import { Link } from '../../shared/router.tsx';
import { visible } from '../../shared/visible.ts';
import { field, isError, subjectOf, tookText } from '../model/fields.ts';
import { uptimeText, useOverview } from '../model/overview.ts';
import { useRequests } from '../model/requests.ts';
import { Fact } from '../parts/fact.tsx';
import { NoRequests } from '../parts/no-requests.tsx';
import { Status } from '../parts/status.tsx';
import { Topology } from '../parts/topology.tsx';

const SHOWN = 20;

/** Gateways and routes, their state, and the latest requests. */
export function Overview(): ReactNode {
  const { data, error, reload } = useOverview();
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
      {data === undefined ? null : (
        <>
          <StatusLine overview={data} />
          <ReloadFailure overview={data} />
          <Problems overview={data} />
          <Topology overview={data} />
        </>
      )}
      <Recent />
    </>
  );
}

function StatusLine({ overview }: { readonly overview: Data }): ReactNode {
  const { version, uptimeSeconds, config, openRequests, logLevel } = overview;
  const { entries } = useRequests();
  return (
    <dl className="facts">
      <Fact name="Version">agctl {version}</Fact>
      <Fact name="Up">{uptimeText(uptimeSeconds)}</Fact>
      <Fact name="Configuration">{visible(config)}</Fact>
      <Fact name="Open requests">{openRequests}</Fact>
      <Fact name="Requests seen">
        {count(entries.length)}, {count(entries.filter(isError).length)} errors
      </Fact>
      <Fact name="Log level">{logLevel}</Fact>
    </dl>
  );
}

function ReloadFailure({ overview }: { readonly overview: Data }): ReactNode {
  const failure = overview.reload?.failure;
  if (failure === undefined) return null;
  const errors = failure.diagnostics.filter(({ severity }) => severity === 'error');
  return (
    <section className="panel problem" aria-labelledby="not-loaded">
      <h2 id="not-loaded">The changed configuration is not loaded</h2>
      <p>
        <span className="bad">✗</span> Read at {clock(Date.parse(failure.at))}. The gateway continues with the
        previous configuration.
      </p>
      <ul>
        {errors.map((diagnostic) => (
          <DiagnosticLine
            key={`${diagnostic.code}:${diagnostic.range.start.line}:${diagnostic.range.start.column}`}
            diagnostic={diagnostic}
          />
        ))}
      </ul>
    </section>
  );
}

function Problems({ overview }: { readonly overview: Data }): ReactNode {
  const { diagnostics } = overview.problems;
  const failing = overview.gateways
    .flatMap(({ routes }) => routes)
    .flatMap(({ name, backends }) =>
      backends
        .flatMap(({ targets = [] }) => targets)
        .filter(({ problem }) => problem !== undefined)
        .map((target) => ({ route: name, ...target })),
    );
  if (diagnostics.length + failing.length === 0)
    return (
      <p className="panel good-box">
        <span className="good">✓</span> No problems: the configuration has no warnings, and no target has
        failed.
      </p>
    );
  return (
    <section className="panel problem" aria-labelledby="problems">
      <h2 id="problems">Problems</h2>
      <ul>
        {failing.map(({ route, name, problem }) => (
          <li key={`${route}/${name}`}>
            <span className="bad">✗</span> Target <strong>{visible(name)}</strong> of route {visible(route)}:{' '}
            {visible(problem ?? '')}
          </li>
        ))}
        {diagnostics.map((diagnostic) => (
          <DiagnosticLine
            key={`${diagnostic.code}:${diagnostic.range.start.line}:${diagnostic.range.start.column}`}
            diagnostic={diagnostic}
          />
        ))}
      </ul>
    </section>
  );
}

function DiagnosticLine({ diagnostic }: { readonly diagnostic: ProblemView }): ReactNode {
  const { severity, code, message, range, help } = diagnostic;
  return (
    <li>
      <span className={severity === 'error' ? 'bad' : 'warn'}>{severity === 'error' ? '✗' : '!'}</span>{' '}
      {visible(message)}{' '}
      <Link to="/config" query={{ line: String(range.start.line) }}>
        <code>
          {visible(range.file)}:{range.start.line}:{range.start.column}
        </code>
      </Link>{' '}
      <span className="quiet">{code}</span>
      {help === undefined ? null : <div className="quiet">{visible(help)}</div>}
    </li>
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
                  <th scope="col" className="wide">
                    About
                  </th>
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
                      {field(entry, 'http.method')} {field(entry, 'http.path')}
                    </td>
                    <td className="wide">{subjectOf(entry)}</td>
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
