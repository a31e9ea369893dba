import { isCredentialName } from '../../core/credentials.ts';
import type { GatewayPlan, LocatedProblem, RoutePlan } from './plan.ts';

type LlmConfig = NonNullable<RoutePlan['config']['backends'][number]['llm']>;

/** Policies that authenticate clients or restrict who may call. */
const BOUNDS = ['apiKey', 'mcpAuthentication', 'extAuthz', 'authorization'] as const;

/** Whether a port listens on all addresses, so that other machines on its networks can reach it. */
function isOnAllAddresses({ address }: GatewayPlan): boolean {
  return address === undefined || address === '0.0.0.0' || /^[0:]+$/.test(address);
}

/** Whether a provider gets a key from the configuration. */
function sendsKey({ models, providers }: LlmConfig): boolean {
  return models.some(({ provider, params, requestHeaders }) => {
    const entry =
      typeof provider === 'string' ? undefined : providers.find(({ name }) => name === provider.reference);
    const headers = Object.keys({ ...requestHeaders?.add, ...requestHeaders?.set });
    return (
      params.apiKey !== undefined || entry?.params.apiKey !== undefined || headers.some(isCredentialName)
    );
  });
}

/** Paths of the LLM backends of a port that anyone who reaches it can use at the operator's expense. */
export function openLlmBackends(gateway: GatewayPlan): (readonly (string | number)[])[] {
  if (!isOnAllAddresses(gateway)) return [];
  return gateway.routes.flatMap(({ config, path, backendPath }) => {
    if (BOUNDS.some((key) => config.policies?.[key] !== undefined)) return [];
    return config.backends.flatMap(({ llm }, index) =>
      llm !== undefined && sendsKey(llm) ? [backendPath ?? [...path, 'backends', index, 'llm']] : [],
    );
  });
}

/** A warning for each LLM backend with a provider key that every client on the network can use. */
export function openLlmProblems(gateways: readonly GatewayPlan[]): LocatedProblem[] {
  return gateways.flatMap((gateway) =>
    openLlmBackends(gateway).map((path) => ({
      code: 'AGW0312' as const,
      severity: 'warning' as const,
      path,
      atKey: true,
      message: `anyone who reaches port ${gateway.port} can call models with your provider key`,
      label: 'no policy asks clients for a key, and the port is on all addresses of this machine',
      help: 'add `apiKey: { mode: strict, keys: [{ key: $CLIENT_KEY }] }` to its `policies`, or give the port of a gateway `address: 127.0.0.1`',
    })),
  );
}
