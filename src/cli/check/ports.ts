import { createServer } from 'node:net';
import { resolve } from 'node:path';
import { pathText } from '../../core/diagnostic.ts';
import { LIMITS } from '../../core/limits.ts';
import { isOptionalAddress, type ListenAddress, parseListenAddress } from '../../core/listen.ts';
import { ListenError, listenOn } from '../../core/listening-server.ts';
import { escapeControls } from '../../core/log.ts';
import { realPath } from '../../core/real-path.ts';
import { type AdminAddress, addressOf } from '../proxy/address.ts';
import { identityAt, type RunningGateway } from '../proxy/admin-client.ts';
import {
  type CheckContext,
  type CheckGroup,
  type CheckResult,
  check,
  fail,
  notKnown,
  ok,
  skip,
  warn,
} from './check.ts';

export const ports: CheckGroup = {
  name: 'ports',
  title: () => 'ports',
  run(context) {
    const { gateways, config } = context;
    if (config === undefined) return [check('ports', notKnown)];
    const admin = adminAddressOf(config.config, context.env);
    let asked: Promise<RunningGateway | undefined> | undefined;
    const running = (): Promise<RunningGateway | undefined> => {
      asked ??=
        admin === undefined ? Promise.resolve(undefined) : identityAt(admin, LIMITS.checkConnectTimeout);
      return asked;
    };
    const all = [
      ...gateways
        .filter(({ port, isInternal = false }) => port !== 0 && !isInternal)
        .map(({ port, address, name, portPath }) => ({
          port,
          shown: `${port} (gateway ${name})`,
          // A short form without a port uses its default port; the fix then adds the key there.
          key: portPath.length === 1 ? `${name}.port` : pathText(portPath),
          state: fail,
          role: 'gateway' as const,
          problem: () => problemOfPort(port, address),
        })),
      ...operatorPorts(config.config, context.env),
    ].map((port) => checkPort(port, running, context.file));
    return (all.length === 0 ? [skip('no fixed port')] : all).map((result) => check('ports', result));
  },
};

/** A port that the gateway would open. */
interface CheckedPort {
  readonly port: number;
  readonly shown: string;
  /** The key that changes it. */
  readonly key: string;
  /** What it means if it cannot be opened. */
  readonly state: typeof fail;
  /** Who connects there: clients, `check` itself, or monitoring. */
  readonly role: 'gateway' | 'admin' | 'signals';
  /** Opens it and closes it again. Resolves to what prevents that. */
  problem(): Promise<Problem | undefined>;
}

interface Problem {
  readonly isInUse: boolean;
  /** As a predicate: `is in use`. */
  readonly text: string;
}

async function checkPort(
  { port, shown, key, state, role, problem }: CheckedPort,
  running: () => Promise<RunningGateway | undefined>,
  file: string,
): Promise<CheckResult> {
  const found = await problem();
  if (found === undefined) return ok(shown.replace(' ', ' is free '));
  const gateway = found.isInUse ? await running() : undefined;
  const isOfGateway = gateway !== undefined && isPortOf(gateway, port, role);
  if (isOfGateway && isSame(gateway, file))
    return skip(
      `${shown} is in use by the gateway of ${gateway.shown}, which is running already${role === 'gateway' ? ' (`agctl proxy shutdown` stops it)' : ''}`,
    );
  if (isOfGateway)
    return state(`${shown} is in use by the gateway of ${shownPath(gateway)}`, `stop it, or change ${key}`);
  const expected = gateway === undefined ? '; this is expected if the gateway is already running' : '';
  return state(`${shown} ${found.text}`, `stop the process that uses it, or change ${key}${expected}`);
}

/** Whether a port is one of a running gateway. Its admin server has answered at its own port. */
function isPortOf(
  { ports: own, signalPorts }: RunningGateway,
  port: number,
  role: CheckedPort['role'],
): boolean {
  if (role === 'gateway') return own.includes(port);
  return role === 'admin' || signalPorts === undefined || signalPorts.includes(port);
}

/** Another gateway, with its folder, if it tells. */
const shownPath = ({ configPath, pid, shown }: RunningGateway): string =>
  configPath === undefined ? shown : `${escapeControls(configPath)} (pid ${pid})`;

/** Whether a gateway has the file that is checked: its name may be that of another file in the folder of the gateway. */
const isSame = ({ configPath, config }: RunningGateway, file: string): boolean =>
  (configPath ?? config) === realPath(resolve(file));

const DEFAULT_ADMIN = 'localhost:15000';
type Settings = NonNullable<CheckContext['config']>['config'];

/** Where the admin server of a running gateway with this configuration answers. */
function adminAddressOf({ adminAddr }: Settings, env: CheckContext['env']): AdminAddress | undefined {
  const listening = parseListenAddress(env['ADMIN_ADDR'] || adminAddr);
  return listening && addressOf(listening);
}

/** The operator servers. A conflict at a default address is only a warning, because the gateway starts anyway. */
function operatorPorts(
  { adminAddr, statsAddr, readinessAddr }: Settings,
  env: CheckContext['env'],
): CheckedPort[] {
  const configuredAdmin = adminAddr === DEFAULT_ADMIN ? undefined : adminAddr;
  const servers = [
    ['admin', 'adminAddr', env['ADMIN_ADDR'], configuredAdmin, DEFAULT_ADMIN],
    ['stats', 'statsAddr', env['STATS_ADDR'], statsAddr, ':15020'],
    ['readiness', 'readinessAddr', env['READINESS_ADDR'], readinessAddr, ':15021'],
  ] as const;
  return servers.flatMap(([name, key, fromEnv, configured, fallback]) => {
    const address = parseListenAddress(fromEnv || configured || fallback);
    if (address?.kind !== 'tcp' || address.port === 0) return [];
    const isOptional = !fromEnv && isOptionalAddress(configured, fallback);
    return [
      {
        port: address.port,
        shown: `${address.port} (${name})`,
        key: `config.${key}`,
        state: isOptional ? warn : fail,
        role: name === 'admin' ? ('admin' as const) : ('signals' as const),
        problem: () => problemOfAddress(address),
      },
    ];
  });
}

/** Opens every host of the address as the gateway would. */
async function problemOfAddress(address: ListenAddress): Promise<Problem | undefined> {
  try {
    const server = await listenOn(address, () => undefined);
    await server?.close();
    return undefined;
  } catch (error) {
    if (!(error instanceof ListenError)) throw error;
    const isInUse = error.code === 'EADDRINUSE';
    return { isInUse, text: isInUse ? 'is in use' : error.reason };
  }
}

function problemOfPort(port: number, host: string | undefined): Promise<Problem | undefined> {
  return new Promise((done) => {
    const server = createServer();
    server.once('error', ({ code }: NodeJS.ErrnoException) => {
      const isInUse = code === 'EADDRINUSE';
      done({ isInUse, text: isInUse ? 'is in use' : `cannot be opened (${code})` });
    });
    server.listen({ port, host }, () => server.close(() => done(undefined)));
  });
}
