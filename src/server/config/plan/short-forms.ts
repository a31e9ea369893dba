import type { Path } from '../../../core/diagnostic.ts';
import type { Config, RouteConfig } from '../schema.ts';
import type { ListenerPlan, Plan, RoutePlan } from './plan.ts';
import { planPolicies } from './policies.ts';
import { DEFAULT_GATEWAY, referenced } from './references.ts';

/** A short form: a top-level section for one route with one backend. */
interface ShortForm {
  readonly key: 'mcp' | 'llm';
  /** Default port, if neither a port nor a gateway is named (specification: 4000 for LLM, 3000 for MCP). */
  readonly port: number;
  /** Path prefixes on a gateway with other routes. */
  readonly sharedPrefixes: readonly string[];
  readonly routeName: string;
  /** Names in configuration dumps. */
  readonly dump: { readonly key: string; readonly name: string; readonly backend: string };
}

const SHORT_FORMS: readonly ShortForm[] = [
  {
    key: 'mcp',
    port: 3000,
    sharedPrefixes: ['/mcp', '/sse', '/.well-known'],
    routeName: 'internal/default',
    dump: { key: 'mcp:default', name: 'default', backend: 'mcp' },
  },
  {
    key: 'llm',
    port: 4000,
    sharedPrefixes: ['/v1', '/v1beta'],
    routeName: 'internal/llm:request',
    dump: { key: 'llm:request', name: 'llm:request', backend: 'llm:router' },
  },
];

/** Paths of the pages, and of what they call. */
const UI_PREFIXES = ['/ui', '/api'];
const UI_PATHS = ['/config_dump', '/logging', '/memory', '/debug/trace', '/debug/tasks'];

const UI_FORM = {
  key: 'ui',
  routeName: 'internal/ui',
  dump: { key: 'ui', name: 'ui', backend: 'ui' },
} as const;

/** Adds the routes of the admin pages to the gateways that `ui` names. */
function placeUi({ ui, config: { adminAddr, adminRoles } }: Config, plan: Plan): void {
  if (ui === undefined) return;
  const matches = [
    ...UI_PREFIXES.map((pathPrefix) => ({ path: { pathPrefix } })),
    ...UI_PATHS.map((exact) => ({ path: { exact } })),
  ];
  const route = (prefix: string): RoutePlan =>
    planSection(
      UI_FORM,
      { backend: { adminAddr, roles: adminRoles }, policies: ui.policies, matches },
      prefix,
    );
  const owners = referenced(plan, ui.gateways, ['ui'], '`ui`');
  for (const listener of owners) listener.routes.push(route(listener.routePrefix));
  if (owners.length === 0) plan.detached.push(route('detached/'));
}

/** Adds the routes of the short forms: for all paths on their own port, for `sharedPrefixes` on a gateway with other routes. */
export function placeShortForms(config: Config, plan: Plan): void {
  for (const form of SHORT_FORMS) placeShortForm(form, config, plan);
  placeUi(config, plan);
}

function placeShortForm(form: ShortForm, config: Config, plan: Plan): void {
  const { key, port: ownPort, sharedPrefixes } = form;
  const { gateways, detached, problems } = plan;
  const section = config[key];
  if (section === undefined) return;
  const { port, gateways: references } = section;
  const route = (prefixes: readonly string[], routePrefix: string): RoutePlan =>
    planRoute(form, section, prefixes, routePrefix);
  const asDetached = (): RoutePlan => route(sharedPrefixes, 'detached/');
  // A gateway without other routes works like `llm.port`: `/chat/completions` without `/v1`, and errors in the API's format.
  const prefixesOn = ({ routes }: ListenerPlan): readonly string[] =>
    key === 'llm' && routes.length === 0 ? ['/'] : sharedPrefixes;
  if (port !== undefined && references !== undefined) {
    problems.push({
      code: 'AGW0105',
      path: [key, 'gateways'],
      message: `\`${key}.gateways\` cannot be used with \`${key}.port\``,
      help: 'keep one of them',
    });
    detached.push(asDetached());
    return;
  }
  const shares =
    port === undefined && (references !== undefined || gateways.some(({ name }) => name === DEFAULT_GATEWAY));
  if (shares) {
    const owners = referenced(plan, references, [key], `\`${key}\``);
    for (const listener of owners) listener.routes.push(route(prefixesOn(listener), listener.routePrefix));
    if (owners.length === 0) detached.push(asDetached());
    return;
  }
  gateways.push({
    name: key,
    port: port ?? ownPort,
    address: undefined,
    portPath: port === undefined ? [key] : [key, 'port'],
    listeners: [
      {
        name: key,
        key,
        hostname: undefined,
        protocol: 'HTTP',
        tls: undefined,
        path: [key],
        policies: [],
        routePrefix: '',
        routes: [route(['/'], '')],
        tcpRoutes: [],
      },
    ],
  });
}

function planRoute(
  form: ShortForm,
  section: NonNullable<Config['mcp'] | Config['llm']>,
  prefixes: readonly string[],
  routePrefix: string,
): RoutePlan {
  const { port: _port, gateways: _gateways, policies: given, ...fields } = section;
  // The only policy that the backend runs.
  const { guardrails, ...policies } = { guardrails: undefined, ...given };
  const backend = guardrails === undefined ? fields : { ...fields, policies: { guardrails } };
  const matches = prefixes.map((pathPrefix) => ({ path: { pathPrefix } }));
  return planSection(form, { backend, policies: given && policies, matches }, routePrefix);
}

/** The route of a section with one backend. */
function planSection(
  { key, routeName, dump }: Pick<ShortForm, 'routeName' | 'dump'> & { readonly key: string },
  {
    backend,
    policies,
    matches,
  }: {
    readonly backend: object;
    readonly policies: RouteConfig['policies'];
    readonly matches: readonly { readonly path: object }[];
  },
  routePrefix: string,
): RoutePlan {
  const path: Path = [key];
  const fullKey = `${routePrefix}${dump.key}`;
  // The remaining fields of the section are validated backend fields; only the other kinds are missing.
  const kinds = { weight: 1, [key]: backend } as RouteConfig['backends'][number];
  return {
    key: `internal/${key}`,
    name: routeName,
    fullKey,
    dumpName: dump.name,
    namespace: 'internal',
    config: {
      namespace: 'internal',
      hostnames: [],
      matches: matches.map((match) => ({ ...match, headers: [], query: [] })) as RouteConfig['matches'],
      policies,
      backends: [kinds],
    },
    path,
    isShortForm: true,
    policies: planPolicies(policies ?? {}, [key, 'policies'], fullKey),
    backends: [
      {
        id: `${fullKey}/backend0`,
        name: dump.backend,
        weight: 1,
        config: kinds,
        path,
        isSection: true,
        reference: undefined,
        policies: [],
      },
    ],
    groups: [],
  };
}
