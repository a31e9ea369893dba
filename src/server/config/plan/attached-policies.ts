import type { Path } from '../../../core/diagnostic.ts';
import { anyPolicyKinds, policyKindsAt } from '../../features.ts';
import { GATEWAY } from '../../kernel/gateway-name.ts';
import type { Config } from '../schema.ts';
import { withTls } from './backend-tls.ts';
import type { NamedBackends } from './named-backends.ts';
import type {
  BackendPlan,
  GatewayPlan,
  ListenerPlan,
  LocatedProblem,
  Plan,
  PolicyPlan,
  RoutePlan,
} from './plan.ts';

type Attachment = Config['policies'][number];

interface Attached {
  readonly target: Attachment['target'];
  readonly phase: Attachment['phase'];
  readonly policy: PolicyPlan;
  readonly path: Path;
  /** Whether it applies to anything. */
  isUsed: boolean;
}

/**
 * Adds the top-level `policies` to what they target, and the policies of delegating routes to the routes of their groups.
 * Lists of policies are in ascending order of precedence: gateway, listener, route, then what is written at the place.
 */
export function attachPolicies(config: Config, plan: Plan, named: NamedBackends): Plan {
  const { problems } = plan;
  const all = config.policies.flatMap((attachment, index) =>
    planAttachment(attachment, ['policies', index], problems),
  );
  const result = {
    ...plan,
    gateways: plan.gateways.map((gateway) => ({
      ...gateway,
      listeners: gateway.listeners.map((listener) => finishListener(listener, gateway, all)),
    })),
    detached: plan.detached.map((route) => finishRoute(route, [], all)),
  };
  for (const { target, path, isUsed } of all)
    if (!isUsed) problems.push(...unusedTarget(target, path, result, named));
  return result;
}

function planAttachment(
  { name, target, phase, policy }: Attachment,
  path: Path,
  problems: LocatedProblem[],
): Attached[] {
  const kinds = Object.entries(target).flatMap(([key, value]) => (value === undefined ? [] : [key]));
  if (kinds.length !== 1) {
    problems.push({
      code: 'AGW0105',
      path: [...path, 'target'],
      message: kinds.length === 0 ? 'the policy has no target' : 'the policy has several targets',
      label: 'expected exactly one of `gateway`, `route`, `backend`',
    });
    return [];
  }
  const entries = Object.entries(policy).filter(([, settings]) => settings !== undefined);
  const [entry] = entries;
  if (entries.length !== 1 || entry === undefined) {
    problems.push({
      code: 'AGW0105',
      path: [...path, 'policy'],
      message: `\`policy\` has ${entries.length === 0 ? 'no policy' : 'several policies'}`,
      label: 'expected exactly one',
      help: 'write one entry of `policies` for each',
    });
    return [];
  }
  const [key, settings] = entry;
  const at = [...path, 'policy', key];
  const place = target.backend !== undefined ? 'backend' : phase === 'gateway' ? 'gateway' : 'route';
  if (phase === 'gateway' && target.gateway === undefined) {
    problems.push({
      code: 'AGW0104',
      path: [...path, 'phase'],
      message: '`phase: gateway` needs a target `gateway`',
      label: 'before routing, neither a route nor a backend is known',
      help: 'remove `phase`, or target the gateway',
    });
    return [];
  }
  if (!policyKindsAt(place).some((kind) => kind.key === key)) {
    problems.push({
      code: 'AGW0104',
      path: at,
      atKey: true,
      message: `\`${key}\` cannot be attached to a ${place}${place === 'gateway' ? ' before routing' : ''}`,
      label: `possible: ${policyKindsAt(place)
        .map((kind) => `\`${kind.key}\``)
        .join(', ')}`,
    });
    return [];
  }
  const id = `policy/${name.namespace}/${name.name}/${key}`;
  return [{ target, phase, path, policy: { id, key, config: settings, path: at }, isUsed: false }];
}

function finishListener(
  listener: ListenerPlan,
  gateway: GatewayPlan,
  all: readonly Attached[],
): ListenerPlan {
  const of = (phase: Attachment['phase']): PolicyPlan[] => [
    ...take(all, (each) => each.phase === phase && isWholeGateway(each)),
    ...take(all, (each) => each.phase === phase && isListener(each, listener, gateway)),
  ];
  const before = of('gateway');
  const shared = of('route');
  return {
    ...listener,
    policies: [...before, ...listener.policies],
    routes: listener.routes.map((route) => finishRoute(route, shared, all)),
  };
}

function finishRoute(
  route: RoutePlan,
  inherited: readonly PolicyPlan[],
  all: readonly Attached[],
): RoutePlan {
  const own = [
    ...take(
      all,
      ({ target: { route: named } }) => named?.name === route.dumpName && named.namespace === route.namespace,
    ),
    ...route.policies,
  ];
  const policies = [...inherited, ...own];
  return {
    ...route,
    policies,
    backends: route.backends.map((backend) =>
      backend.reference === undefined
        ? withTls(backend, [...policies, ...backend.policies])
        : finishNamed(backend, backend.reference, own, all),
    ),
    groups: route.groups.map((group) => ({
      ...group,
      routes: group.routes.map((child) => finishRoute(child, policies, all)),
    })),
  };
}

function finishNamed(
  backend: BackendPlan,
  reference: string,
  ofRoute: readonly PolicyPlan[],
  all: readonly Attached[],
): BackendPlan {
  const attached = take(all, ({ target: { backend: named } }) => named?.backend.name === reference);
  // Of the named backend itself, for all routes; the others are written at the reference.
  const isGeneral = ({ path: [section] }: PolicyPlan): boolean =>
    section === 'policies' || section === 'backends';
  const policies = [...attached, ...backend.policies].filter(
    (policy) =>
      !(isGeneral(policy) && isForBackendCall(policy) && ofRoute.some(({ key }) => key === policy.key)),
  );
  return { ...backend, policies };
}

function isForBackendCall({ key }: PolicyPlan): boolean {
  return anyPolicyKinds.some((kind) => kind.key === key && kind.isForBackendCall === true);
}

/** The policies of these attachments, which are used now. */
function take(all: readonly Attached[], applies: (each: Attached) => boolean): PolicyPlan[] {
  return all.filter(applies).map((each) => {
    each.isUsed = true;
    return each.policy;
  });
}

function isThisGateway({ target: { gateway } }: Attached): boolean {
  return gateway?.gatewayName === GATEWAY.name && gateway.gatewayNamespace === GATEWAY.namespace;
}

function isWholeGateway(each: Attached): boolean {
  const { gateway } = each.target;
  return isThisGateway(each) && gateway?.listenerName === undefined && gateway?.port === undefined;
}

function isListener(each: Attached, { name }: ListenerPlan, { port }: GatewayPlan): boolean {
  const { gateway } = each.target;
  if (!isThisGateway(each) || (gateway?.listenerName === undefined && gateway?.port === undefined))
    return false;
  return (gateway.listenerName ?? name) === name && (gateway.port ?? port) === port;
}

/** A policy without effect may have been meant as protection, so it is an error. */
function unusedTarget(
  { gateway, route, backend }: Attachment['target'],
  path: Path,
  { gateways }: Plan,
  named: NamedBackends,
): LocatedProblem[] {
  const names = (list: readonly string[]): string =>
    [...new Set(list)].map((name) => `\`${name}\``).join(', ') || 'none';
  const listeners = gateways.flatMap((each) => each.listeners);
  const problem = (key: string, message: string, help: string): LocatedProblem[] => [
    { code: 'AGW0107', path: [...path, 'target', key], message, help },
  ];
  if (gateway !== undefined)
    return problem(
      'gateway',
      'no listener is the target of this policy',
      `the gateway is \`${GATEWAY.namespace}/${GATEWAY.name}\`; its listeners are ${names(listeners.map(({ name }) => name))}`,
    );
  if (route !== undefined)
    return problem(
      'route',
      `no route is called \`${route.namespace}/${route.name}\``,
      `routes of this file: ${names(listeners.flatMap(({ routes }) => routes.map(({ name }) => name)).slice(0, 20))}`,
    );
  if (backend === undefined) return [];
  const { name } = backend.backend;
  if (named.has(name))
    return [
      {
        code: 'AGW0303',
        path: [...path, 'target', 'backend'],
        message: `the policy has no effect: no route uses the backend \`${name}\``,
      },
    ];
  return problem(
    'backend',
    `no backend is called \`${name}\``,
    `top-level \`backends\` of this file: ${names([...named.keys()])}`,
  );
}
