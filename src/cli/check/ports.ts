import { createServer } from 'node:net';
import { pathText } from '../../core/diagnostic.ts';
import { type ListenAddress, parseListenAddress } from '../../core/listen.ts';
import { ListenError, listenOn } from '../../core/listening-server.ts';
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
  run({ gateways, config, env }) {
    if (config === undefined) return [check('ports', notKnown)];
    const fixed = gateways.filter(({ port }) => port !== 0);
    const all = [
      ...fixed.map(({ port, address, name, portPath }) =>
        // A short form without a port uses its default port; the fix then adds the key there.
        checkPort(
          port,
          address,
          `gateway ${name}`,
          portPath.length === 1 ? `${name}.port` : pathText(portPath),
          fail,
        ),
      ),
      ...operatorPorts(config.config, env),
    ];
    return (all.length === 0 ? [skip('no fixed port')] : all).map((result) => check('ports', result));
  },
};

const DEFAULT_ADMIN = 'localhost:15000';

/** The operator servers. A conflict at a default address is only a warning, because the gateway starts anyway. */
function operatorPorts(
  { adminAddr, statsAddr, readinessAddr }: NonNullable<CheckContext['config']>['config'],
  env: CheckContext['env'],
): Promise<CheckResult>[] {
  const servers = [
    [
      'admin',
      'adminAddr',
      env['ADMIN_ADDR'] || (adminAddr === DEFAULT_ADMIN ? '' : adminAddr),
      DEFAULT_ADMIN,
    ],
    ['stats', 'statsAddr', env['STATS_ADDR'] || statsAddr, ':15020'],
    ['readiness', 'readinessAddr', env['READINESS_ADDR'] || readinessAddr, ':15021'],
  ] as const;
  return servers.flatMap(([name, key, configured, fallback]) => {
    const address = parseListenAddress(configured || fallback);
    if (address?.kind !== 'tcp' || address.port === 0) return [];
    return [checkAddress(address, `${address.port} (${name})`, `config.${key}`, configured ? fail : warn)];
  });
}

/** Opens every host of the address as the gateway would, and closes it again. */
async function checkAddress(
  address: ListenAddress,
  shown: string,
  key: string,
  state: typeof fail,
): Promise<CheckResult> {
  try {
    const server = await listenOn(address, () => undefined);
    await server?.close();
    return ok(shown.replace(' ', ' is free '));
  } catch (error) {
    if (!(error instanceof ListenError)) throw error;
    const why = error.code === 'EADDRINUSE' ? 'is in use' : error.reason;
    return state(`${shown} ${why}`, freeOrMove(key));
  }
}

function checkPort(
  port: number,
  host: string | undefined,
  name: string,
  key: string,
  state: typeof fail,
): Promise<CheckResult> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', ({ code }: NodeJS.ErrnoException) => {
      const why = code === 'EADDRINUSE' ? 'is in use' : `cannot be opened (${code})`;
      resolve(state(`${port} (${name}) ${why}`, freeOrMove(key)));
    });
    server.listen({ port, host }, () => server.close(() => resolve(ok(`${port} is free (${name})`))));
  });
}

/** A port in use is a problem before the start, but expected while the gateway is running. */
const freeOrMove = (key: string): string =>
  `stop the process that uses it, or change ${key}; this is expected if the gateway is already running`;
