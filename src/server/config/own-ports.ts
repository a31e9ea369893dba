import { membersOf, stringIn } from '../../core/foreign.ts';
import {
  isLoopback,
  isOptionalAddress,
  overlap,
  parseListenAddress,
  type TcpAddress,
} from '../../core/listen.ts';
import type { YamlSource } from '../../core/yaml/source.ts';
import { addressOf, type GatewayPlan, type LocatedProblem } from './plan/plan.ts';
import type { Config } from './schema.ts';

/** A server of the process: its name in messages, and the configuration key of its address. */
interface OwnServer {
  readonly name: string;
  readonly key: string;
  readonly address: TcpAddress;
  /** Whether the address is the default: the server is then not started if the address is in use. */
  readonly isDefault: boolean;
}

/**
 * Port conflicts between gateways and the metrics, readiness and admin servers of this process, and among these servers.
 * Opens no ports. `planGateways` checks gateways against each other.
 */
export function ownPortProblems(
  gateways: readonly GatewayPlan[],
  { config }: Config,
  source: YamlSource,
  env: Readonly<Record<string, string | undefined>>,
): LocatedProblem[] {
  const { adminAddr } = membersOf(membersOf(source.value)['config']);
  const configuredAdminAddr = adminAddr === false ? 'off' : stringIn(adminAddr);
  const server = (
    name: string,
    key: string,
    [fromEnv, configured]: readonly (string | undefined)[],
    fallback: string,
    isOptional = isOptionalAddress(configured, fallback),
  ): OwnServer[] => {
    const address = parseListenAddress(fromEnv || configured || fallback);
    if (address?.kind !== 'tcp' || address.port === 0) return [];
    return [{ name, key, address, isDefault: !fromEnv && isOptional }];
  };
  const signals = [
    ...server('stats', 'statsAddr', [env['STATS_ADDR'], config.statsAddr], ':15020'),
    ...server('readiness', 'readinessAddr', [env['READINESS_ADDR'], config.readinessAddr], ':15021'),
  ];
  const admin = server(
    'admin',
    'adminAddr',
    [env['ADMIN_ADDR'], configuredAdminAddr],
    'localhost:15000',
    configuredAdminAddr === undefined,
  );
  const servers = [...signals, ...admin];
  const isOpen =
    !env['ADMIN_ADDR'] &&
    config.adminRoles === undefined &&
    admin.some(({ address }) => !address.hosts.every(isLoopback));
  return [
    ...(isOpen ? [OPEN_ADMIN] : []),
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

const OPEN_ADMIN: LocatedProblem = {
  code: 'AGW0312',
  severity: 'warning',
  path: ['config', 'adminAddr'],
  message: 'other machines can reach the admin server, and everybody who can may do everything',
  label: 'no authentication',
  help: 'set it to an address such as `localhost:15000`, or set `config.adminRoles`',
};

function gatewayProblem(
  { name, port, portPath }: GatewayPlan,
  { name: server, key, isDefault }: OwnServer,
): LocatedProblem {
  const isOmitted = server === 'admin' && isDefault;
  return {
    code: 'AGW0106',
    severity: isOmitted ? 'warning' : 'error',
    path: portPath,
    message: `port ${port} of gateway \`${name}\` is also the port of the ${server} server`,
    ...(isOmitted ? { label: `the ${server} server will not start` } : {}),
    help: `set another port here, or set \`config.${key}\` to another address or \`off\``,
  };
}

function serverProblem(earlier: OwnServer, later: OwnServer): LocatedProblem {
  // The problem is reported at an address that is configured explicitly.
  const [shown, other] = later.isDefault ? [earlier, later] : [later, earlier];
  return {
    code: 'AGW0106',
    severity: later.isDefault ? 'warning' : 'error',
    path: ['config', shown.key],
    message: `port ${shown.address.port} of the ${shown.name} server is also the port of the ${other.name} server`,
    ...(later.isDefault ? { label: `the ${later.name} server will not start` } : {}),
    help: `set another port here, or set \`config.${other.key}\` to another address or \`off\``,
  };
}

/** The problem of a file without ports: a warning at start, an error on a reload that would close all ports. */
export function noPortProblem(isReload: boolean, source: YamlSource): LocatedProblem {
  const hasKey = membersOf(source.value)['gateways'] !== undefined;
  return {
    code: 'AGW0305',
    severity: isReload ? 'error' : 'warning',
    path: hasKey ? ['gateways'] : [],
    message: 'no port is configured',
    label: isReload ? 'every port would be closed' : 'nothing is served',
    help: 'add a gateway with `port` and `routes`, or one of the short forms `mcp` and `llm`',
  };
}
