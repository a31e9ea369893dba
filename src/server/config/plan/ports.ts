import { overlap } from '../../../core/listen.ts';
import { addressOf, type GatewayPlan, type LocatedProblem } from './plan.ts';

/** Reports ports that two sections configure, and listeners without routes. */
export function checkPorts(gateways: readonly GatewayPlan[], problems: LocatedProblem[]): void {
  const taken = new Map<number, GatewayPlan[]>();
  for (const gateway of gateways) {
    problems.push(...unusedListeners(gateway));
    const { port } = gateway;
    if (port === 0) continue;
    const others = taken.get(port) ?? [];
    const first = others.find((other) => overlap(addressOf(other), addressOf(gateway)));
    if (first !== undefined) problems.push(samePort(first, gateway));
    taken.set(port, [...others, gateway]);
  }
}

function unusedListeners({ name, port, portPath, listeners, isTunnel }: GatewayPlan): LocatedProblem[] {
  if (isTunnel === true) return [];
  const unused = listeners.filter(({ routes, tcpRoutes }) => routes.length + tcpRoutes.length === 0);
  const warning = { code: 'AGW0303', severity: 'warning', help: 'add `routes` to it, or remove it' } as const;
  if (unused.length === listeners.length)
    return [
      {
        ...warning,
        path: portPath,
        message: `port ${port} is not used: gateway \`${name}\` has no routes`,
        label: 'every request would get 404 `route not found`',
      },
    ];
  return unused.map((listener) => ({
    ...warning,
    path: listener.path,
    message: `listener \`${listener.name}\` has no routes`,
    label: `every request to ${listener.hostname ?? 'it'} would get 404 \`route not found\``,
  }));
}

function samePort(first: GatewayPlan, { name, port, portPath, address }: GatewayPlan): LocatedProblem {
  const isShortForm =
    portPath[0] !== 'gateways' && portPath[0] !== 'binds' && first.portPath[0] === 'gateways';
  const instead = portPath.length > 1 ? ' instead of `port`' : '';
  return {
    code: 'AGW0106',
    path: portPath,
    message: `port ${port} is configured by both \`${first.name}\` and \`${name}\``,
    // Two different addresses may not look like a conflict.
    ...(first.address !== address && { label: `${inWords(first)}, and ${inWords({ name, address })}` }),
    help: isShortForm
      ? `set another port, or write \`gateways: ${first.name}\`${instead}`
      : 'give each gateway its own port, or put the routes under one gateway',
  };
}

function inWords({ name, address = 'all addresses' }: Pick<GatewayPlan, 'name' | 'address'>): string {
  return `\`${name}\` listens on ${address}`;
}

/** Reports routes of one listener with the same name, which logs could not tell apart. */
export function checkRouteNames(gateways: readonly GatewayPlan[], problems: LocatedProblem[]): void {
  for (const { listeners } of gateways)
    for (const { name, path: listenerPath, routes } of listeners) {
      const seen = new Set<string>();
      for (const { key, config, path } of routes) {
        if (seen.has(key)) {
          problems.push({
            code: 'AGW0106',
            path: config.name === undefined ? path : [...path, 'name'],
            message: `two routes of ${listenerPath[0] === 'gateways' ? 'gateway' : 'listener'} \`${name}\` are called \`${key}\``,
            help: 'give each route its own `name`',
          });
        }
        seen.add(key);
      }
    }
}
