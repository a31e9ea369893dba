import type { Path } from '../../../core/diagnostic.ts';
import type { ServerTlsConfig } from '../../transport/tls/server-tls.ts';
import type { Protocol } from '../traffic-schema.ts';
import type { GatewayPlan, ListenerPlan, LocatedProblem } from './plan.ts';

/** The keys of a listener that say what clients speak. */
export interface ProtocolFields {
  readonly protocol?: Protocol | undefined;
  readonly tls?: ServerTlsConfig | undefined;
}

/** The protocol of a listener, with its default. Reports what cannot be served. `path` is that of the listener. */
export function protocolOf(
  { protocol: given, tls }: ProtocolFields,
  path: Path,
  problems: LocatedProblem[],
): Pick<ListenerPlan, 'protocol' | 'tls'> {
  const protocol = given ?? (tls === undefined ? 'HTTP' : 'HTTPS');
  if (protocol === 'HBONE')
    problems.push({
      code: 'AGW0104',
      path: [...path, 'protocol'],
      message:
        'listeners with the protocol `HBONE` are not supported: the gateway is not part of a service mesh',
      help: 'use HTTP, HTTPS, TLS or TCP',
    });
  if (protocol === 'HTTPS' && tls === undefined)
    problems.push({
      code: 'AGW0103',
      path: [...path, 'protocol'],
      message: 'a listener with the protocol `HTTPS` needs a certificate',
      help: 'add `tls: { cert: cert.pem, key: key.pem }`',
    });
  if ((protocol === 'HTTP' || protocol === 'TCP') && tls !== undefined)
    problems.push({
      code: 'AGW0105',
      path: [...path, 'tls'],
      atKey: true,
      message: `\`tls\` cannot be used with the protocol \`${protocol}\``,
      help: protocol === 'HTTP' ? 'set `protocol: HTTPS`, or remove `protocol`' : 'set `protocol: TLS`',
    });
  return { protocol, tls };
}

/** What a port does with the first bytes of a connection: it either waits for TLS or does not. */
export type Transport = 'HTTP' | 'TLS' | 'TCP';

export function transportOf({ listeners }: Pick<GatewayPlan, 'listeners'>): Transport {
  const protocol = listeners[0]?.protocol;
  if (protocol === 'HTTPS' || protocol === 'TLS') return 'TLS';
  return protocol === 'TCP' ? 'TCP' : 'HTTP';
}

/** Reports listeners that cannot share a port: a connection has to say which of them it is for. */
export function checkProtocols(gateways: readonly GatewayPlan[], problems: LocatedProblem[]): void {
  for (const { port, listeners } of gateways) {
    const [first] = listeners;
    problems.push(...listeners.flatMap(routeProblems));
    for (const listener of listeners.slice(1)) {
      const transport = transportOf({ listeners: [listener] });
      const isShared = first !== undefined && transportOf({ listeners: [first] }) === transport;
      if (first === undefined || (isShared && transport !== 'TCP')) continue;
      problems.push({
        code: 'AGW0105',
        path: [...listener.path, 'protocol'],
        message: `listener \`${listener.name}\` (${listener.protocol}) cannot share port ${port} with \`${first.name}\` (${first.protocol})`,
        help: isShared
          ? 'a port has one listener with the protocol `TCP`: connections do not name a host'
          : 'give it a port of its own; `HTTPS` and `TLS` can share one',
      });
    }
  }
}

/** Reports routes that their listener cannot serve, because connections have no requests, or the other way round. */
function routeProblems({ name, protocol, tls, routes, tcpRoutes }: ListenerPlan): LocatedProblem[] {
  const isTcp = protocol === 'TCP' || protocol === 'TLS';
  const problems = (isTcp ? routes : tcpRoutes).map(({ path }): LocatedProblem => {
    const key = isTcp ? 'routes' : 'tcpRoutes';
    return {
      code: 'AGW0105',
      path,
      message: `\`${key}\` cannot be served by listener \`${name}\`, whose protocol is \`${protocol}\``,
      help: isTcp
        ? 'use `tcpRoutes`, or the protocol `HTTP` or `HTTPS`'
        : 'use `routes`, or the protocol `TCP` or `TLS`',
    };
  });
  if (protocol !== 'TCP') return problems;
  for (const { config, path } of tcpRoutes)
    if (config.hostnames.length > 0)
      problems.push({
        code: 'AGW0303',
        path: [...path, 'hostnames'],
        message: 'connections name no host with the protocol `TCP`, so the route would never be used',
        help: tls === undefined ? 'remove `hostnames`, or set `protocol: TLS`' : 'remove `hostnames`',
      });
  return problems;
}
