import { type ReactNode, useMemo } from 'react';
import type { BackendView, ModelView, Overview, RouteView, TargetView } from '../../../core/overview.ts';
import { counted } from '../../../core/render/counted.ts';
import { CopyButton } from '../../shared/copy.tsx';
import { Link } from '../../shared/router.tsx';
import { visible } from '../../shared/visible.ts';
import { clientAddress } from '../model/client-address.ts';
import { field, isError, isRefused } from '../model/fields.ts';
import { type Entry, useRequests } from '../model/requests.ts';
import { ToolCalls } from './tool-calls.tsx';

/** Gateways, their routes and backends, with their state. */
export function Topology({ overview }: { readonly overview: Overview }): ReactNode {
  const { entries } = useRequests();
  const counts = useMemo(() => countByRoute(entries), [entries]);
  const isShared = useMemo(() => sharedRoutes(overview), [overview]);
  return overview.gateways.map(({ key, name, url, routes }) => (
    <section key={key} className="panel" aria-label={`Gateway ${name}`}>
      <h2>
        {visible(name)} <code className="quiet">{url}</code>
      </h2>
      {routes.length === 0 ? (
        <p>This gateway has no routes: every request is answered with status 404.</p>
      ) : null}
      <ul className="routes">
        {routes.map((route) => (
          <Route
            key={`${route.listener} ${route.key}`}
            route={route}
            isShared={isShared(route)}
            count={countOf(counts, route)}
          />
        ))}
      </ul>
    </section>
  ));
}

/** Whether several listeners serve a route. */
function sharedRoutes({ gateways }: Overview): (route: RouteView) => boolean {
  const names = gateways.flatMap(({ routes }) => routes.map(({ name }) => name));
  const seen = new Set<string>();
  const shared = new Set(names.filter((name) => seen.size === seen.add(name).size));
  return ({ name }) => shared.has(name);
}

interface Count {
  /** The name of the route in the access log. */
  readonly logged: string;
  readonly all: number;
  readonly errors: number;
  readonly refused: number;
}

type Counts = ReadonlyMap<string, Count>;

/** By listener and route: requests of one gateway are not those of another that has the route. */
function countByRoute(entries: readonly Entry[]): Counts {
  const counts = new Map<string, Count>();
  for (const entry of entries) {
    const logged = field(entry, 'route');
    const key = countKey(field(entry, 'listener'), logged);
    const { all, errors, refused } = counts.get(key) ?? { all: 0, errors: 0, refused: 0 };
    counts.set(key, {
      logged,
      all: all + 1,
      errors: errors + (isError(entry) ? 1 : 0),
      refused: refused + (isRefused(entry) ? 1 : 0),
    });
  }
  return counts;
}

const countKey = (listener: string, route: string): string => `${listener} ${route}`;

/** A configuration may leave `listener` out of the access log. */
const countOf = (counts: Counts, { listener, name, key }: RouteView): Count | undefined =>
  counts.get(countKey(listener, name)) ??
  counts.get(countKey(listener, key)) ??
  counts.get(countKey('', name)) ??
  counts.get(countKey('', key));

function Route({
  route,
  isShared,
  count,
}: {
  readonly route: RouteView;
  readonly isShared: boolean;
  readonly count: Count | undefined;
}): ReactNode {
  const { title, listener, hostnames, matches, policies, line, backends } = route;
  const address = clientAddress(route);
  const where = [...hostnames.map((host) => `on ${host}`), ...matches].map(visible).join(', ');
  return (
    <li>
      <div className="route">
        <strong>{visible(title)}</strong>
        {where === title ? null : <code>{where}</code>}
        <Link to="/config" query={{ line: String(line) }}>
          line {line}
        </Link>
        {count === undefined ? (
          <span className="quiet">no requests yet</span>
        ) : (
          <Link
            to="/requests"
            query={{ route: count.logged, ...(isShared && { text: `listener=${listener}` }) }}
          >
            {count.all} {count.all === 1 ? 'request' : 'requests'}
            {count.errors === 0 ? '' : `, ✗ ${count.errors} ${count.errors === 1 ? 'error' : 'errors'}`}
            {count.refused === 0 ? '' : `, ! ${count.refused} refused`}
          </Link>
        )}
        <Link to="/trace" query={expressionFor(matches[0])}>
          Trace
        </Link>
      </div>
      {address === undefined ? null : (
        <div className="address">
          <span className="quiet">{address.what}</span> <code>{visible(address.url)}</code>{' '}
          <CopyButton text={address.url}>Copy</CopyButton>
        </div>
      )}
      {policies.length === 0 ? null : (
        <ol className="chips" aria-label="Policies in the order of evaluation">
          {policies.map((policy) => (
            <li key={policy}>{policy}</li>
          ))}
        </ol>
      )}
      <ul className="backends">
        {backends.map((backend, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a backend is identified by its position in the configuration.
          <Backend key={index} backend={backend} isOne={backends.length === 1} />
        ))}
      </ul>
    </li>
  );
}

/** A CEL expression for the requests of a match, as far as its text tells. */
function expressionFor(match = ''): Record<string, string> {
  const [, method, path = '', star] = /^(?:([A-Z]+) )?(\/[^\s*]*)(\*)?$/.exec(match) ?? [];
  const parts = [
    method === undefined ? '' : `request.method == ${JSON.stringify(method)}`,
    path === '' || path === '/'
      ? ''
      : star === undefined
        ? `request.path == ${JSON.stringify(path)}`
        : `request.path.startsWith(${JSON.stringify(path)})`,
  ].filter((part) => part !== '');
  return parts.length === 0 ? {} : { expression: parts.join(' && ') };
}

function Backend({ backend, isOne }: { readonly backend: BackendView; readonly isOne: boolean }): ReactNode {
  const { kind, weight, address, sessions, targets = [], models = [] } = backend;
  return (
    <li>
      <span className="kind">{kind}</span> {address === undefined ? null : <code>{visible(address)}</code>}{' '}
      <span className="quiet">
        {isOne ? '' : `weight ${weight} `}
        {sessions === undefined ? '' : counted(sessions, 'session')}
      </span>
      <ul className="targets">
        {targets.map((target) => (
          <Target key={target.name} target={target} />
        ))}
        {models.map((model) => (
          <Model key={`${model.name} ${model.provider}`} model={model} />
        ))}
      </ul>
    </li>
  );
}

const MARKS: Readonly<Record<string, readonly [mark: string, tone: string]>> = {
  ready: ['✓', 'good'],
  connecting: ['…', 'quiet'],
  failing: ['✗', 'bad'],
  idle: ['○', 'quiet'],
};

function Target({ target }: { readonly target: TargetView }): ReactNode {
  const { name, state, kind, at, connections, problem, website, tools, pins } = target;
  const [mark, tone] = MARKS[state] ?? ['…', 'quiet'];
  return (
    <li>
      <span className={tone}>
        {mark} {state}
      </span>{' '}
      <strong>{visible(name)}</strong>{' '}
      <span className="quiet">
        {kind} <code>{visible(at)}</code>
        {connections === 0 ? '' : `, ${counted(connections, 'connection')}`}
      </span>{' '}
      {tools === undefined ? null : (
        <Link to="/mcp" query={{ target: name }}>
          {counted(tools, 'tool')}
        </Link>
      )}
      {pins === undefined || pins.changed.length === 0 ? null : (
        <div className="warn">! {counted(pins.changed.length, 'tool')} changed since pinned</div>
      )}
      <ToolCalls target={name} />
      {website === undefined ? null : (
        <>
          {' '}
          <a href={website} target="_blank" rel="noreferrer" title={visible(website)}>
            website
          </a>
        </>
      )}
      {problem === undefined ? null : <div className="bad">{visible(problem)}</div>}
    </li>
  );
}

function Model({ model }: { readonly model: ModelView }): ReactNode {
  const { name, provider, address, requests, pending, failures, latency } = model;
  return (
    <li>
      {failures === 0 ? (
        <span className="good">✓ ok</span>
      ) : (
        <span className="bad">✗ {counted(failures, 'failure')} in a row</span>
      )}{' '}
      <strong>{visible(name)}</strong>{' '}
      <span className="quiet">
        {visible(provider)} {address === undefined ? null : <code>{visible(address)}</code>}
        {requests === 0 ? '' : ` ${counted(requests, 'request')}, ${latency} ms on average`}
        {pending === 0 ? '' : `, ${pending} in progress`}
      </span>
    </li>
  );
}
