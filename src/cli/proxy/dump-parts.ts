import { isRecord } from '../../core/foreign.ts';

/** One route of a dump, formatted for display. */
export interface RouteRow {
  readonly address: string;
  readonly listener: string;
  /** Of the listener: `HTTPS`. */
  readonly protocol: string | undefined;
  /** Of the route and its listener, with wildcards. */
  readonly hostnames: readonly string[];
  readonly route: string;
  readonly matches: readonly string[];
  readonly backends: readonly string[];
  readonly policies: readonly string[];
}

/** One endpoint of a service or backend. `health` is a number from 0 to 1, or why it receives no requests. */
export interface EndpointRow {
  readonly type: 'Service' | 'Backend';
  readonly name: string;
  readonly namespace: string;
  readonly endpoint: string;
  readonly health: string;
  readonly requests: number;
  readonly latencyMs: number;
}

type Json = Readonly<Record<string, unknown>>;

/** Every route, in dump order. Missing or mistyped fields are left out and never cause an error. */
export function routesOf(dump: Json): RouteRow[] {
  const backends = backendsOf(dump);
  return objects(dump['binds']).flatMap((bind) =>
    objects(bind['listeners']).flatMap((listener) =>
      [...objects(listener['routes']), ...objects(listener['tcpRoutes'])].map((route) => ({
        address: text(bind['address']),
        listener: text(listener['listenerName']) || text(listener['key']),
        protocol: text(listener['protocol']) || undefined,
        hostnames: [...hostnamesOf(route), text(listener['hostname'])].filter((name) => name !== ''),
        route: text(route['name']) || text(route['key']),
        matches: matchesOf(route),
        backends: [
          ...objects(route['backends']).map((ref) => backendOf(ref, backends)),
          ...(route['llmRouter'] === undefined ? [] : ['llm']),
        ],
        policies: [
          ...new Set([
            ...objects(route['inlinePolicies']).flatMap(policyNames),
            ...objects(route['backends']).flatMap((ref) => backendPolicies(ref, backends)),
          ]),
        ],
      })),
    ),
  );
}

/**
 * Policy names as in a configuration: upstream dumps MCP authentication as `jwtAuth` with an `mcp` member, and `apiKey`
 * as `aPIKey`.
 */
function policyNames(policy: Json): string[] {
  return Object.entries(policy)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => {
      if (name === 'aPIKey') return 'apiKey';
      return name === 'jwtAuth' && isRecord(value) && value['mcp'] !== undefined ? 'mcpAuthentication' : name;
    });
}

function matchesOf(route: Json): string[] {
  const hosts = hostnamesOf(route);
  const matches = objects(route['matches']).map((match) => {
    const [[kind, path] = ['', '']] = isRecord(match['path']) ? Object.entries(match['path']) : [];
    const conditions = ['headers', 'query'].filter((key) => objects(match[key]).length > 0);
    const method =
      text(match['method']) || (isRecord(match['method']) ? text(match['method']['method']) : '');
    return [method, `${text(path)}${kind === 'pathPrefix' ? '*' : ''}`, ...conditions]
      .filter((part) => part !== '')
      .join(' ');
  });
  const paths = matches.length === 0 ? ['/*'] : matches;
  return hosts.length === 0 ? paths : hosts.flatMap((host) => paths.map((path) => `${host} ${path}`));
}

const hostnamesOf = ({ hostnames }: Json): string[] => (Array.isArray(hostnames) ? hostnames.map(text) : []);

/** A backend of a dump, by its name in references: its kind, as in `mcp (echo, time)`, and its settings. */
type Backends = ReadonlyMap<string, { readonly kind: string; readonly target: unknown }>;

function backendsOf(dump: Json): Backends {
  const found = new Map<string, { readonly kind: string; readonly target: unknown }>();
  for (const { backend } of objects(dump['backends'])) {
    for (const [kind, value] of isRecord(backend) ? Object.entries(backend) : [])
      if (isRecord(value))
        found.set(`${text(value['namespace'])}/${text(value['name'])}`, {
          kind: `${kind}${targetsOf(value['target'])}`,
          target: value['target'],
        });
  }
  return found;
}

/** Policies of a reference to a backend, and the guardrails of its models. */
function backendPolicies(ref: Json, backends: Backends): string[] {
  const target = backends.get(text(ref['backend']))?.target;
  const models = isRecord(target) && Array.isArray(target['models']) ? target['models'] : undefined;
  const targets = models?.map((name) => backends.get(`/${text(name)}`)?.target) ?? [target];
  const guarded = targets.flatMap(providersOf).filter(isGuarded).length;
  return [
    ...objects(ref['inlinePolicies']).flatMap((policy) =>
      isPromptGuard(policy) ? ['guardrails'] : policyNames(policy),
    ),
    ...(guarded === 0 ? [] : [policyOfModels('guardrails', guarded)]),
  ];
}

/** A policy that only some models of a backend have. */
export function policyOfModels(name: string, models: number): string {
  return `${name} of ${models} ${models === 1 ? 'model' : 'models'}`;
}

function providersOf(target: unknown): Json[] {
  return isRecord(target)
    ? objects(target['providers']).flatMap(({ active, rejected }) => [
        ...objects(active),
        ...objects(rejected),
      ])
    : [];
}

const isGuarded = ({ endpoint }: Json): boolean =>
  isRecord(endpoint) && objects(endpoint['inlinePolicies']).some(isPromptGuard);

const isPromptGuard = ({ ai }: Json): boolean => isRecord(ai) && isRecord(ai['promptGuard']);

function targetsOf(target: unknown): string {
  if (typeof target === 'string') return ` ${target}`;
  if (!isRecord(target)) return '';
  const names = [
    ...objects(target['targets']).map(({ name }) => text(name)),
    ...objects(target['providers']).flatMap(({ active }) => (isRecord(active) ? Object.keys(active) : [])),
  ];
  return names.length === 0 ? '' : ` (${names.join(', ')})`;
}

function backendOf(ref: Json, backends: Backends): string {
  const name = text(ref['backend']);
  if (name !== '') return backends.get(name)?.kind ?? name;
  for (const [key, value] of Object.entries(ref)) {
    if (key === 'weight' || key === 'inlinePolicies') continue;
    if (typeof value === 'string') return value;
    if (isRecord(value)) return `${key} ${text(value['name'])}`.trim();
  }
  return '';
}

/** Endpoints of services and backends, sorted like upstream's by type, namespace, name and endpoint. */
export function endpointsOf(dump: Json): EndpointRow[] {
  const rows = objects(dump['services']).flatMap((service) =>
    rowsOf('Service', service, service['endpoints']),
  );
  for (const { backend } of objects(dump['backends'])) {
    for (const value of isRecord(backend) ? Object.values(backend) : [])
      if (isRecord(value) && isRecord(value['target']))
        for (const row of rowsOf('Backend', value, value['target']['providers'])) rows.push(row);
  }
  const key = ({ type, namespace, name, endpoint }: EndpointRow): string =>
    [type, namespace, name, endpoint].join('\0');
  return rows.sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

/** Backends without endpoints of their own, which have no row: MCP servers and services. */
export function uncountedBackends(dump: Json): number {
  const values = objects(dump['backends']).flatMap(({ backend }) =>
    isRecord(backend) ? Object.entries(backend) : [],
  );
  return values.filter(([kind]) => kind === 'mcp' || kind === 'host').length;
}

function rowsOf(type: EndpointRow['type'], owner: Json, sets: unknown): EndpointRow[] {
  const namespace = text(owner['namespace']);
  const base = { type, name: text(owner['name']), namespace };
  return objects(sets).flatMap((set) => [
    ...entriesOf(set['active']).map(([key, entry]) => ({
      ...base,
      ...endpointRow(key, entry, namespace, false),
    })),
    ...entriesOf(set['rejected']).map(([key, entry]) => ({
      ...base,
      ...endpointRow(key, entry, namespace, true),
    })),
  ]);
}

function endpointRow(
  key: string,
  entry: Json,
  namespace: string,
  isRejected: boolean,
): Pick<EndpointRow, 'endpoint' | 'health' | 'requests' | 'latencyMs'> {
  const info = isRecord(entry['info']) ? entry['info'] : {};
  const details = isRecord(entry['endpoint']) ? entry['endpoint'] : {};
  return {
    endpoint: shortKey(key, namespace) || text(details['name']) || text(details['workloadUid']),
    health: isRejected ? evicted(info['evictedUntil']) : number(info['health']).toFixed(2),
    requests: number(info['totalRequests'] ?? info['total_requests']),
    latencyMs: number(info['requestLatency'] ?? info['request_latency']) * 1000,
  };
}

/** Shortens `cluster//Pod/ns/name` to `name` if the namespace is displayed already. */
function shortKey(key: string, namespace: string): string {
  const parts = key.replace(/^\//, '').split('/');
  const pod = parts.indexOf('Pod');
  const rest = pod === -1 ? parts : parts.slice(pod + 1);
  return (rest.length > 1 && rest[0] === namespace ? rest.slice(1) : rest).join('/');
}

const UNITS: Readonly<Record<string, number>> = {
  h: 3600,
  m: 60,
  s: 1,
  ms: 1e-3,
  us: 1e-6,
  µs: 1e-6,
  ns: 1e-9,
};

/** Formats a duration such as `1m3.25s` as `Evict (63.3s)`. */
function evicted(until: unknown): string {
  const parts = typeof until === 'string' ? [...until.matchAll(/([\d.]+)(ms|us|µs|ns|[hms])/g)] : [];
  if (parts.length === 0) return 'evicted';
  const seconds = parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * (UNITS[unit ?? ''] ?? 0), 0);
  return `Evict (${seconds.toFixed(1)}s)`;
}

function entriesOf(value: unknown): [string, Json][] {
  return isRecord(value)
    ? Object.entries(value).filter((entry): entry is [string, Json] => isRecord(entry[1]))
    : [];
}

/** The objects in a list, or the values of an object that are objects. */
export function objects(value: unknown): Json[] {
  const items: unknown[] = Array.isArray(value) ? value : isRecord(value) ? Object.values(value) : [];
  return items.filter(isRecord);
}

export function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function number(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}
