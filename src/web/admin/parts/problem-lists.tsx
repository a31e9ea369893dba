import type { ReactNode } from 'react';
import type { OutageView, Overview, ProblemView } from '../../../core/overview.ts';
import { counted } from '../../../core/render/counted.ts';
import { clock } from '../../shared/format.ts';
import { Link } from '../../shared/router.tsx';
import { visible } from '../../shared/visible.ts';
import { WithCode } from '../../shared/with-code.tsx';

/** Why the changed configuration is not active, if it is not. */
export function ReloadFailure({ overview }: { readonly overview: Overview }): ReactNode {
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
          <DiagnosticLine key={keyOf(diagnostic)} diagnostic={diagnostic} />
        ))}
      </ul>
    </section>
  );
}

/** What of the gateway itself does not answer, MCP targets that are not available, models that fail, and problems of the configuration: those of one kind together. */
export function Problems({
  overview,
  errors,
}: {
  readonly overview: Overview;
  /** Requests that have failed, of those that the page knows. */
  readonly errors: number;
}): ReactNode {
  const { outages } = overview;
  const { diagnostics, errorCount } = overview.problems;
  const backends = overview.gateways
    .flatMap(({ routes }) => routes)
    .flatMap(({ name, title, backends: own }) =>
      own.map((backend) => ({ route: title, logged: name, ...backend })),
    );
  const targets = backends.flatMap(({ route, targets: own = [] }) =>
    own.filter(({ problem }) => problem !== undefined).map((target) => ({ route, ...target })),
  );
  const models = backends.flatMap(({ route, logged, models: own = [] }) =>
    own.filter(({ failures }) => failures > 0).map((model) => ({ route, logged, ...model })),
  );
  if (outages.length + diagnostics.length + targets.length + models.length === 0)
    return (
      <p className="panel good-box">
        <span className="good">✓</span> The configuration has no warnings, and no target or model is failing
        now.
        {errors === 0 ? null : (
          <>
            {' '}
            <Link to="/requests" query={{ status: 'errors' }}>
              {counted(errors, 'request')}
            </Link>{' '}
            of the newest ended with an error.
          </>
        )}
      </p>
    );
  const isBad = outages.length + errorCount + targets.length + models.length > 0;
  return (
    <section className={isBad ? 'panel problem' : 'panel warning'} aria-labelledby="problems">
      <h2 id="problems">{isBad ? 'Problems' : 'Warnings'}</h2>
      {outages.map(({ at, problem, since }) => (
        <Group key={at} isBad title={`${SERVICES[at]} does not answer`} about={visible(at)}>
          <li>
            <WithCode text={problem} />, since {clock(Date.parse(since))}
          </li>
        </Group>
      ))}
      {targets.length === 0 ? null : (
        <Group
          isBad
          title={
            targets.length === 1
              ? 'An MCP target is not available'
              : `${targets.length} MCP targets are not available`
          }
          about={names(targets)}
        >
          {targets.map(({ route, name, problem }) => (
            <li key={`${route}/${name}`}>
              Target <strong>{visible(name)}</strong> of route {visible(route)}:{' '}
              <WithCode text={problem ?? ''} />
            </li>
          ))}
        </Group>
      )}
      {models.length === 0 ? null : (
        <Group
          isBad
          title={models.length === 1 ? 'A model fails' : `${models.length} models fail`}
          about={names(models)}
        >
          {models.map(({ route, logged, name, provider, failures }) => (
            <li key={`${route}/${name}/${provider}`}>
              Model <strong>{visible(name)}</strong> of route {visible(route)}: {counted(failures, 'failure')}{' '}
              in a row{' '}
              <Link to="/requests" query={{ status: 'errors', route: logged }}>
                Show them
              </Link>
            </li>
          ))}
        </Group>
      )}
      {[...Map.groupBy(diagnostics, ({ code }) => code)].map(([code, own]) => (
        <Group
          key={code}
          isBad={own.some(({ severity }) => severity === 'error')}
          title={own[0]?.message ?? ''}
          about={own.length === 1 ? code : `${code}, ${own.length} places`}
        >
          {own.map((diagnostic) => (
            <DiagnosticLine key={keyOf(diagnostic)} diagnostic={diagnostic} />
          ))}
        </Group>
      ))}
    </section>
  );
}

const SERVICES: Readonly<Record<OutageView['at'], string>> = {
  'config.database': 'The database',
  'config.shared': 'The shared store',
};

/** Names in the line of a group; its list has all of them. */
const NAMED = 5;

function names(all: readonly { readonly name: string }[]): string {
  const shown = all.slice(0, NAMED).map(({ name }) => visible(name));
  return `${shown.join(', ')}${all.length > NAMED ? ` and ${all.length - NAMED} more` : ''}`;
}

/** Problems of one kind: one line, which opens. */
function Group({
  isBad = false,
  title,
  about,
  children,
}: {
  readonly isBad?: boolean;
  readonly title: string;
  readonly about: string;
  readonly children: ReactNode;
}): ReactNode {
  return (
    <details className="kind-of-problem">
      <summary>
        <span className={isBad ? 'bad' : 'warn'}>{isBad ? '✗' : '!'}</span> <WithCode text={title} />{' '}
        <span className="quiet">{about}</span>
      </summary>
      <ul>{children}</ul>
    </details>
  );
}

const keyOf = ({ code, range, message }: ProblemView): string =>
  `${code}:${range.start.line}:${range.start.column}:${message}`;

function DiagnosticLine({ diagnostic }: { readonly diagnostic: ProblemView }): ReactNode {
  const { severity, code, message, range, help } = diagnostic;
  return (
    <li>
      <span className={severity === 'error' ? 'bad' : 'warn'}>{severity === 'error' ? '✗' : '!'}</span>{' '}
      <WithCode text={message} />{' '}
      <Link to="/config" query={{ line: String(range.start.line) }}>
        <code>
          {visible(range.file)}:{range.start.line}:{range.start.column}
        </code>
      </Link>{' '}
      <span className="quiet">{code}</span>
      {help === undefined ? null : (
        <div className="quiet">
          <WithCode text={help} />
        </div>
      )}
    </li>
  );
}
