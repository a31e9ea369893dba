import type { policyKinds } from '../features.ts';
import { appliesAlways } from './conditional-schema.ts';
import type { GatewayPlan, LocatedProblem, PolicyPlan } from './plan/plan.ts';
import type { Config } from './schema.ts';

const PAGE = 'mcpSignIn' satisfies (typeof policyKinds)[number]['key'];

/** Warnings about `config.mcp.signIn`: links to its page lead nowhere, or the page cannot know who opens it. */
export function signInProblems(
  gateways: readonly GatewayPlan[],
  { config: { mcp } }: Config,
): LocatedProblem[] {
  const { signIn } = mcp;
  if (signIn === undefined) return [];
  const path = ['config', 'mcp', 'signIn', 'url'];
  const routes = gateways.flatMap(({ listeners }) =>
    listeners.flatMap(({ policies: ofListener, routes: all }) =>
      all.map((route) => ({ route, policies: [...ofListener, ...route.policies] })),
    ),
  );
  const pages = routes.filter(({ policies }) => policies.some(({ key }) => key === PAGE));
  if (pages.length === 0)
    return [
      {
        code: 'AGW0305',
        path,
        message: 'no route has the policy `mcpSignIn`, so the links that users get lead nowhere',
        help: `add a route for this path with \`policies: { mcpSignIn: {} }\`, and with \`oidc\` or \`basicAuth\``,
      },
    ];
  if (signIn.users === 'code') return [];
  return pages.flatMap(({ route, policies }) => {
    if (policies.some(authenticates)) return [];
    return {
      code: 'AGW0305' as const,
      path: route.path,
      message: `route \`${route.name}\` has \`mcpSignIn\`, and no policy that knows who opens the page: it refuses everybody`,
      help: 'add `oidc` or `basicAuth`; or set `config.mcp.signIn.users: code`, so that users enter a code that their client shows',
    };
  });
}

const AUTHENTICATES = new Set<string>(['oidc', 'basicAuth', 'jwtAuth', 'mcpAuthentication', 'apiKey']);

const authenticates = ({ key, config }: PolicyPlan): boolean =>
  AUTHENTICATES.has(key) && appliesAlways(config);
