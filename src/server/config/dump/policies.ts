import { goDuration } from '../../../core/go-duration.ts';
import { authorizationServerOf } from '../../policies/mcp-authentication/index.ts';
import type { Config, RouteConfig } from '../schema.ts';
import { GATEWAY } from './names.ts';

type Policies = NonNullable<RouteConfig['policies']>;
type Settings<Key extends keyof Policies> = NonNullable<Policies[Key]>;
type Rules = Settings<'authorization'>['rules'];

/** One `{key: settings}` per policy of a route, in upstream's names and shapes. Policies without one are shown as configured. */
export function inlinePolicies(policies: Policies | undefined): Readonly<Record<string, unknown>>[] {
  return Object.entries(policies ?? {}).flatMap(([key, settings]) => {
    if (settings === undefined) return [];
    const shape = SHAPES[key];
    return [shape === undefined ? { [key]: settings } : shape(settings)];
  });
}

const shape =
  <Key extends keyof Policies>(
    _key: Key,
    show: (settings: Settings<Key>) => Readonly<Record<string, unknown>>,
  ) =>
  (settings: unknown): Readonly<Record<string, unknown>> =>
    show(settings as Settings<Key>);

/** Policies whose shape or name in dumps differs from the configuration. */
const SHAPES: Readonly<Record<string, (settings: unknown) => Readonly<Record<string, unknown>>>> = {
  timeout: shape('timeout', (settings) => ({ timeout: withDurations(settings) })),
  cors: shape('cors', ({ maxAge, ...rest }) => ({
    cors: { ...rest, maxAge: maxAge === undefined ? null : goDuration(maxAge) },
  })),
  mcpAuthentication: shape('mcpAuthentication', (settings) => ({ jwtAuth: jwtAuth(settings) })),
  // Spelled so upstream.
  apiKey: shape('apiKey', ({ keys, ...rest }) => ({ aPIKey: { ...rest, keys } })),
  authorization: shape('authorization', ({ rules }) => ({
    authorization: { rules: rulesByEffect(rules, 'require') },
  })),
  mcpAuthorization: shape('mcpAuthorization', ({ rules }) => ({
    mcpAuthorization: { rules: rulesByEffect(rules, 'allow') },
  })),
  localRateLimit: shape('localRateLimit', (limits) => ({
    localRateLimit: limits.map(({ fillInterval, ...limit }) => ({
      ...limit,
      fillInterval: goDuration(fillInterval),
    })),
  })),
  extAuthz: shape('extAuthz', ({ host, protocol, ...rest }) => ({
    extAuthz: { host, ...rest, protocol: protocol ?? { http: {} } },
  })),
};

function withDurations(settings: object): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(settings).map(([key, value]) => [
      key,
      typeof value === 'number' ? goDuration(value) : value,
    ]),
  );
}

/** Plain texts count as `plain`: all of them must hold, or one of them lets an item pass. */
function rulesByEffect(rules: Rules, plain: 'allow' | 'require'): Record<string, string[]> {
  const byEffect: Record<string, string[]> = {};
  for (const rule of rules) {
    const [[effect, source] = [plain, '']] =
      typeof rule === 'string' ? [[plain, rule]] : Object.entries(rule);
    byEffect[effect] = [...(byEffect[effect] ?? []), source];
  }
  return byEffect;
}

/** Upstream shows MCP authentication as token validation with a member `mcp`. */
function jwtAuth(settings: Settings<'mcpAuthentication'>): Readonly<Record<string, unknown>> {
  const { mode, issuer, audiences, provider, resourceMetadata, jwtValidationOptions, clientId } = settings;
  return {
    mode,
    providers: [{ issuer, keys: [] }],
    location: settings.authorizationLocation ?? { header: { name: 'authorization', prefix: 'Bearer ' } },
    mcp: {
      issuer,
      audiences,
      provider: provider ?? null,
      resourceMetadata,
      jwtValidator: jwtValidationOptions,
      mode,
      authorizationServer: authorizationServerOf(settings),
      clientId: clientId ?? null,
    },
  };
}

/** What applies to every request: `frontendPolicies`, when there is something in it. */
export function frontendPolicies({ frontendPolicies: { accessLog } }: Config): object[] {
  const { add, remove, filter } = accessLog;
  if (Object.keys(add).length === 0 && remove.length === 0 && filter === undefined) return [];
  return [
    {
      key: 'frontend/accessLog',
      name: null,
      target: {
        gateway: { gatewayName: GATEWAY.name, gatewayNamespace: GATEWAY.namespace, listenerName: null },
      },
      policy: {
        frontend: {
          accessLog: {
            ...(filter === undefined ? {} : { filter }),
            add,
            ...(remove.length === 0 ? {} : { remove }),
          },
        },
      },
    },
  ];
}
