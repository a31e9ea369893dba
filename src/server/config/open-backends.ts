import { backendKinds, policyKinds } from '../features.ts';
import type { GatewayPlan, LocatedProblem } from './plan.ts';

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
  return gateway.routes.flatMap(({ config, path, backendPath }) => {
    const policies: Readonly<Record<string, unknown>> = config.policies ?? {};
    if (policyKinds.some(({ key, restrictsClients }) => restrictsClients && policies[key] !== undefined))
      return [];
    return config.backends.flatMap((backend: Readonly<Record<string, unknown>>, index) =>
      backendKinds.flatMap(({ key, exposes }) => {
        const exposed = backend[key] === undefined ? undefined : exposes?.(backend[key] as never);
        const at = backendPath ?? [...path, 'backends', index, key];
        return exposed === undefined ? [] : [{ path: at, exposes: exposed }];
      }),
    );
  });
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
