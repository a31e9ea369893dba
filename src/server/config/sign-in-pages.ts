import { elementsOf, membersOf } from '../../core/foreign.ts';
import type { policyKinds } from '../features.ts';
import { knownBackends } from './plan/backend-kinds.ts';
import {
  answeringRoutes,
  type GatewayPlan,
  type LocatedProblem,
  type PolicyPlan,
  type RoutePlan,
} from './plan/plan.ts';
import type { Config } from './schema.ts';

type PolicyKey = (typeof policyKinds)[number]['key'];

const PAGE = 'mcpSignIn' satisfies PolicyKey;

/** A route with the policies that run for its requests. */
interface Place {
  readonly route: RoutePlan;
  readonly policies: readonly PolicyPlan[];
}

/** A route to targets at which users sign in, with the paths of `oauth` of these targets. */
interface ToolsRoute extends Place {
  readonly oauth: readonly LocatedProblem['path'][];
}

/** Warnings about sign-ins of users at MCP servers: links that lead nowhere, pages and routes that cannot know the user. */
export function signInProblems(
  gateways: readonly GatewayPlan[],
  { config: { mcp } }: Config,
): LocatedProblem[] {
  const places = gateways.flatMap(({ listeners }) =>
    listeners.flatMap(({ policies: ofListener, routes }) =>
      answeringRoutes(routes).map((route) => ({ route, policies: [...ofListener, ...route.policies] })),
    ),
  );
  const tools = places.flatMap(toolsRoutes);
  const { signIn } = mcp;
  // Without it, `oauth` and `mcpSignIn` are errors.
  if (signIn === undefined) return [];
  const path = ['config', 'mcp', 'signIn'];
  if (tools.length === 0)
    return [
      {
        code: 'AGW0303',
        path,
        atKey: true,
        message: '`signIn` has no effect: no target has `policies.backendAuth.oauth`',
        help: 'add `policies: { backendAuth: { oauth: {} } }` to the targets at which users sign in, or remove `signIn`',
      },
    ];
  const pages = places.filter(({ policies }) => policies.some(({ key }) => key === PAGE));
  const open = tools.flatMap(({ route, policies, oauth }) =>
    policies.some(isAuthenticating) ? [] : oauth.map((each) => unknownCaller(each, route)),
  );
  if (pages.length === 0) return [...open, noPage([...path, 'url'])];
  const known = tools.filter(({ policies }) => policies.some(isAuthenticating));
  return [
    ...open,
    ...pages.flatMap((page) => pageProblems(page, known, signIn.users)),
    ...sameNames([...tools, ...pages]),
  ];
}

/** A warning for each further file of passwords: whoever has a name in one of them has the tokens of that name. */
function sameNames(places: readonly Place[]): LocatedProblem[] {
  const all = places.flatMap(({ route, policies }) =>
    policies
      .filter(({ key }) => key === 'basicAuth')
      .map(({ path, config }) => ({ route, path, text: JSON.stringify(membersOf(config)['htpasswd']) })),
  );
  const [first, ...others] = [...new Map(all.map((each) => [each.text, each])).values()];
  return others.map(({ path }) => ({
    code: 'AGW0106',
    severity: 'warning',
    path: [...path, 'htpasswd'],
    message: `a name in here is the same user as that name in the passwords of route \`${first?.route.name}\`, whose tokens it gets`,
    help: 'use one list for all routes with sign-ins at MCP servers, or a name in one of them only',
  }));
}

function toolsRoutes({ route, policies }: Place): ToolsRoute[] {
  return route.backends.flatMap((backend) => {
    const oauth = knownBackends([backend]).flatMap(({ kind, settings, path }) =>
      kind.key === 'mcp' ? oauthOf(settings).map((inside) => [...path, ...inside]) : [],
    );
    return oauth.length === 0 ? [] : [{ route, policies: [...policies, ...backend.policies], oauth }];
  });
}

/** The paths of `oauth` below the settings of an MCP backend. */
function oauthOf(settings: unknown): (string | number)[][] {
  return elementsOf(membersOf(settings)['targets']).flatMap((target, index) => {
    const { oauth } = membersOf(membersOf(membersOf(target)['policies'])['backendAuth']);
    return oauth === undefined ? [] : [['targets', index, 'policies', 'backendAuth', 'oauth']];
  });
}

const unknownCaller = (path: LocatedProblem['path'], { name }: RoutePlan): LocatedProblem => ({
  code: 'AGW0305',
  path,
  atKey: true,
  message: `no policy of route \`${name}\` says who calls, so no user can sign in at this server`,
  label: 'a token belongs to one user; every call of this target is refused',
  help: 'add `mcpAuthentication`, `basicAuth` or `apiKey` to the policies of the route',
});

const noPage = (path: LocatedProblem['path']): LocatedProblem => ({
  code: 'AGW0305',
  path,
  message: 'no route has the policy `mcpSignIn`, so the links that users get lead nowhere',
  help: 'add a route for this path with `policies: { mcpSignIn: {} }`, and with `oidc` or `basicAuth`',
});

function pageProblems(
  { route, policies }: Place,
  tools: readonly ToolsRoute[],
  users: 'authenticated' | 'code',
): LocatedProblem[] {
  const own = policies.filter(isAuthenticating);
  const asks = own.find(isForPrograms);
  if (asks !== undefined)
    return [
      {
        code: 'AGW0305',
        path: asks.path,
        atKey: true,
        message: `\`${asks.key}\` of route \`${route.name}\` refuses everybody who opens the page: browsers send no such credential`,
        help:
          users === 'code'
            ? 'remove it: users enter the code that their client shows'
            : `use \`oidc\` or \`basicAuth\`, if the clients of the tools have the same users; otherwise remove it, and ${WITH_CODE}`,
      },
    ];
  if (own.length === 0) return users === 'code' || tools.length === 0 ? [] : [unknownVisitor(route, tools)];
  return tools.flatMap((other): LocatedProblem[] => {
    const known = new Set(own.map(usersOf));
    const [first] = other.policies.filter(isAuthenticating);
    if (first === undefined || other.policies.some((policy) => known.has(usersOf(policy)))) return [];
    return [
      {
        code: 'AGW0305',
        path: own[0]?.path ?? route.path,
        atKey: true,
        message: `\`${own[0]?.key}\` of this page and \`${first.key}\` of route \`${other.route.name}\` never know the same user, so the page refuses everybody`,
        help: `use policies on both routes that know the same users, such as \`oidc\` here and \`mcpAuthentication\` there; or remove \`${own[0]?.key}\` here${users === 'code' ? '' : `, and ${WITH_CODE}`}`,
      },
    ];
  });
}

function unknownVisitor({ path, name }: RoutePlan, tools: readonly ToolsRoute[]): LocatedProblem {
  const haveKeysOnly = tools.every(({ policies }) =>
    policies.filter(isAuthenticating).every(({ key }) => key === 'apiKey'),
  );
  return {
    code: 'AGW0305',
    path,
    message: `route \`${name}\` has \`mcpSignIn\`, and no policy that knows who opens the page: it refuses everybody`,
    help: haveKeysOnly ? WITH_CODE : `add \`oidc\` or \`basicAuth\`; or ${WITH_CODE}`,
  };
}

const WITH_CODE =
  'set `config.mcp.signIn.users: code`, so that users enter a code that their client shows, which clients with API keys need';

/** The policies that say who calls, with whose users theirs can be the same. */
const USERS: Partial<Record<PolicyKey, string>> = {
  basicAuth: 'names',
  apiKey: 'keys',
  oidc: 'subjects',
  jwtAuth: 'subjects',
  mcpAuthentication: 'subjects',
};

const usersOf = ({ key }: PolicyPlan): string | undefined =>
  Object.entries(USERS).find(([name]) => name === key)?.[1];

const isAuthenticating = (policy: PolicyPlan): boolean => usersOf(policy) !== undefined;

/** Whether a policy asks for what only programs send, such as a header with a key, and refuses requests without. */
function isForPrograms({ key, config }: PolicyPlan): boolean {
  if (!['apiKey', 'jwtAuth', 'mcpAuthentication'].includes(key)) return false;
  const { mode, location, authorizationLocation } = membersOf(config);
  return mode === 'strict' && location === undefined && authorizationLocation === undefined;
}
