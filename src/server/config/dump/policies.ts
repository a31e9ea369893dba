import { membersOf } from '../../../core/foreign.ts';
import { anyPolicyKinds } from '../../features.ts';
import { GATEWAY } from '../../kernel/gateway-name.ts';
import { entrySettings, isConditional } from '../conditional-schema.ts';
import type { Config } from '../schema.ts';

/** One `{key: settings}` per policy of a route or backend, in upstream's names and shapes. */
export function inlinePolicies(policies: object | undefined): Readonly<Record<string, unknown>>[] {
  return Object.entries(policies ?? {}).flatMap(([key, settings]: [string, unknown]) => {
    if (settings === undefined) return [];
    const kind = anyPolicyKinds.find((each) => each.key === key);
    if (kind === undefined || !isConditional(settings))
      return [kind?.dump?.(settings) ?? { [key]: settings }];
    const conditional = settings.conditional.map((entry) => {
      const own = entrySettings(kind, entry);
      const [shown] = [kind.dump?.(own)[key] ?? own].flat();
      return { ...(entry.condition !== undefined && { condition: entry.condition }), ...membersOf(shown) };
    });
    return [{ [key]: { conditional } }];
  });
}

/** The policies of every request: `frontendPolicies`, unless it is empty. */
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

/** The top-level `policies`, with the phase that they run in. */
export function attachedPolicies({ policies }: Config): object[] {
  return policies.map(({ name, target, phase, policy }) => ({
    key: `${name.namespace}/${name.name}`,
    name: { kind: 'Local', ...name },
    target,
    policy: {
      [target.backend === undefined ? 'traffic' : 'backend']: {
        ...(target.backend === undefined ? { phase } : {}),
        ...Object.assign({}, ...inlinePolicies(policy)),
      },
    },
  }));
}
