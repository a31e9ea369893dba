import { overlap, parseListenAddress, type TcpAddress } from '../../core/listen.ts';
import type { YamlSource } from '../../core/yaml/source.ts';
import { addressOf, type GatewayPlan, type LocatedProblem } from './plan.ts';
import type { Config } from './schema.ts';

/** A server that the process opens, in words and with the key that decides its address. */
interface OwnServer {
  readonly name: string;
  readonly key: string;
  readonly address: TcpAddress;
  /** Nobody asked for this address: the server is left out when it is taken. */
  readonly isDefault: boolean;
}

/**
 * Ports that servers of this process would take from each other: gateways from the servers of metrics, readiness and
 * administration, and those from one another. Nothing is opened to find them. Gateways among themselves are the
 * plan's to check.
 */
export function ownPortProblems(
  gateways: readonly GatewayPlan[],
  { config }: Config,
  source: YamlSource,
  env: Readonly<Record<string, string | undefined>>,
): LocatedProblem[] {
  const written = (source.value as { config?: { adminAddr?: string } } | null)?.config?.adminAddr;
  const server = (name: string, key: string, set: string | undefined, fallback: string): OwnServer[] => {
    const address = parseListenAddress(set || fallback);
    if (address?.kind !== 'tcp' || address.port === 0) return [];
    return [{ name, key, address, isDefault: !set }];
  };
  const adminAddr = env['ADMIN_ADDR'] || (written === undefined ? undefined : config.adminAddr);
  // In the order in which they are opened; the gateways come before the last one.
  const signals = [
    ...server('stats', 'statsAddr', env['STATS_ADDR'] || config.statsAddr, ':15020'),
    ...server('readiness', 'readinessAddr', env['READINESS_ADDR'] || config.readinessAddr, ':15021'),
  ];
  const admin = server('admin', 'adminAddr', adminAddr, 'localhost:15000');
  const servers = [...signals, ...admin];
  return [
    ...gateways.flatMap((gateway) =>
      servers
        .filter(({ address }) => overlap(address, addressOf(gateway)))
        .map((taken) => gatewayProblem(gateway, taken)),
    ),
    ...servers.flatMap((later, index) =>
      servers
        .slice(0, index)
        .filter(({ address }) => overlap(address, later.address))
        .map((earlier) => serverProblem(earlier, later)),
    ),
  ];
}

function gatewayProblem(
  { name, port, portPath }: GatewayPlan,
  { name: server, key, isDefault }: OwnServer,
): LocatedProblem {
  const isLeftOut = server === 'admin' && isDefault;
  return {
    code: 'AGW0106',
    severity: isLeftOut ? 'warning' : 'error',
    path: portPath,
    message: `port ${port} of gateway \`${name}\` is also the port of the ${server} server`,
    ...(isLeftOut ? { label: `there will be no ${server} server` } : {}),
    help: `set another port here, or set \`config.${key}\` to another address or \`off\``,
  };
}

function serverProblem(earlier: OwnServer, later: OwnServer): LocatedProblem {
  // Of two addresses that one is at fault which somebody wrote.
  const [shown, other] = later.isDefault ? [earlier, later] : [later, earlier];
  return {
    code: 'AGW0106',
    severity: later.isDefault ? 'warning' : 'error',
    path: ['config', shown.key],
    message: `port ${shown.address.port} of the ${shown.name} server is also the port of the ${other.name} server`,
    ...(later.isDefault ? { label: `there will be no ${later.name} server` } : {}),
    help: `set another port here, or set \`config.${other.key}\` to another address or \`off\``,
  };
}

/** A file without a port: fine for nobody, and when it follows one with ports, hardly what was meant. */
export function noPortProblem(isReload: boolean, source: YamlSource): LocatedProblem {
  const hasKey = (source.value as { gateways?: unknown } | null)?.gateways !== undefined;
  return {
    code: 'AGW0305',
    severity: isReload ? 'error' : 'warning',
    path: hasKey ? ['gateways'] : [],
    message: 'no port is configured',
    label: isReload ? 'every port would be closed' : 'nothing is served',
    help: 'add a gateway with `port` and `routes`, or one of the short forms `mcp` and `llm`',
  };
}
