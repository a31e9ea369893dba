import { elementsOf, membersOf } from '../../core/foreign.ts';
import { anyPolicyKinds } from '../features.ts';
import { appliesAlways } from './conditional-schema.ts';
import { kindsOf } from './plan/backend-kinds.ts';
import type { GatewayPlan, LocatedProblem, PolicyPlan } from './plan/plan.ts';

/** A backend that every client on the network can use at the operator's expense. */
interface OpenBackend {
  /** Where it is configured. */
  readonly path: readonly (string | number)[];
  /** What any client can do: `BackendKind.exposes`. */
  readonly exposes: string;
}

/** Whether a port listens on all addresses, so that other machines on its networks can reach it. */
function isOnAllAddresses({ address }: GatewayPlan): boolean {
  return address === undefined || address === '0.0.0.0' || /^[0:]+$/.test(address);
}

/** Backends of a port that use the operator's credentials although no policy restricts who may call them. */
export function openBackends(gateway: GatewayPlan): OpenBackend[] {
  if (!isOnAllAddresses(gateway)) return [];
  return gateway.listeners.flatMap(({ policies: ofListener, routes }) =>
    routes.flatMap((route) =>
      route.backends.flatMap((backend): OpenBackend[] => {
        const policies = [...ofListener, ...route.policies, ...backend.policies];
        if (policies.some(restrictsClients)) return [];
        return kindsOf(backend).flatMap(({ kind, settings, path }) => {
          const exposed = kind.exposes?.(settings) ?? exposedBy(policies);
          return exposed === undefined ? [] : [{ path, exposes: exposed }];
        });
      }),
    ),
  );
}

/** The methods of `backendAuth` that need nothing of the client. */
const OWN_METHODS = ['key', 'jwtSign', 'aws', 'gcp', 'azure'];

/** What every client can do because a policy adds a credential of the operator. */
function exposedBy(policies: readonly PolicyPlan[]): string | undefined {
  const adds = policies.some(({ key, config }) => {
    const members = membersOf(config);
    return (
      key === 'backendAuth' &&
      (OWN_METHODS.some((method) => members[method] !== undefined) ||
        elementsOf(members['credentials']).length > 0)
    );
  });
  return adds ? 'use this service with the credential of `backendAuth`' : undefined;
}

function restrictsClients(policy: PolicyPlan): boolean {
  return (
    anyPolicyKinds.some((kind) => kind.key === policy.key && kind.restrictsClients === true) &&
    appliesAlways(policy.config)
  );
}

/** A warning for each backend that every client on the network can use at the operator's expense. */
export function openBackendProblems(gateways: readonly GatewayPlan[]): LocatedProblem[] {
  return gateways.flatMap((gateway) =>
    openBackends(gateway).map(({ path, exposes }) => ({
      code: 'AGW0312' as const,
      severity: 'warning' as const,
      path,
      atKey: true,
      message: `anyone who reaches port ${gateway.port} can ${exposes}`,
      label: 'no policy asks clients for a key, and the port is on all addresses of this machine',
      help: 'add `apiKey: { mode: strict, keys: [{ key: $CLIENT_KEY }] }` to its `policies`, or give the port of a gateway `address: 127.0.0.1`',
    })),
  );
}
