import type { Socket } from 'node:net';
import { z } from 'zod';
import { list, mapping, nonEmpty } from '../../core/schema/mapping.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import { clientOf } from '../kernel/request/client-connection.ts';
import { canonicalName } from '../kernel/request/request-target.ts';
import { type Entrance, entranceFor, type RelayEnded, type RelayedConnection } from './listener/entrance.ts';
import { isOneReference, referredHost, serviceFields, serviceMeta } from './services/service-reference.ts';
import { relayTcp, type TcpTarget } from './tcp-relay.ts';
import { type BackendTls, backendTlsSchema, compileBackendTls } from './tls/backend-tls.ts';
import { Reachability } from './upstream/upstream-request.ts';

const policies = mapping('Policies of the connections to the service.', {
  backendTLS: backendTlsSchema.optional(),
}).optional();

const HOST_PORT = /^(?:\[[0-9A-Fa-f:.]+\]|[^\s:/@[\]]+):\d{1,5}$/;

export const tcpRouteFields = {
  name: nonEmpty.optional().describe('Name of the route; `routeN` by default.'),
  namespace: nonEmpty.optional().describe('First part of the name of the route.'),
  hostnames: list(
    'Names that clients ask for with TLS (SNI), with the protocol `TLS`. Every connection if empty; the most specific route takes it.',
    z.string().regex(/^(?:\*\.)?[A-Za-z0-9.-]+$/, {
      error: 'expected a host name such as `db.example.com` or `*.example.com`',
    }),
  ),
  policies,
  backends: z
    .array(
      z
        .strictObject({
          weight: z
            .int()
            .min(0)
            .default(1)
            .describe('Share of connections, among the weights of all backends.'),
          host: z
            .string()
            .regex(HOST_PORT, { error: 'expected `host:port`' })
            .optional()
            .describe('Address of the service: `host:port`.'),
          backend: serviceFields.backend,
          dynamic: z
            .strictObject({})
            .meta({
              elsewhere: {
                target:
                  'the server of a connection is not computed: it is the one that its client names with TLS',
              },
            })
            .optional()
            .describe(
              'Instead of `host`: the server that the client names with TLS (SNI), at the port that it has connected to. Clients can reach every host that the gateway reaches: restrict them with `hostnames`.',
            ),
          policies,
        })
        .check((payload) => {
          const { dynamic, host, backend } = payload.value;
          if (dynamic === undefined || host !== undefined || backend !== undefined) isOneReference(payload);
        })
        .meta({
          elsewhere: {
            ...serviceMeta.elsewhere,
            backendTunnel: 'tunnels to backends are not supported',
          },
        }),
    )
    .min(1)
    .describe('Services that share connections by weight.'),
};

const meta = {
  elsewhere: {
    ruleName: 'it names a part of a Kubernetes TCPRoute: remove it',
    matches: 'connections have no paths: use `hostnames`',
  },
};

export const tcpRouteSchema = mapping(
  'A route for connections whose bytes are passed on, on a listener with the protocol `TCP` or `TLS`.',
  tcpRouteFields,
).meta(meta);

export const tcpRouteMeta = meta;

export type TcpRouteConfig = z.output<typeof tcpRouteSchema>;

interface TcpRoute {
  readonly name: string;
  readonly targets: readonly { readonly weight: number; readonly target: TargetOf }[];
}

/** The service for a connection; undefined if the client does not name it. */
type TargetOf = (
  socket: Socket,
  serverName: string | undefined,
) => (TcpTarget & { readonly address: string }) | undefined;

/** Compiles the `tcpRoutes` of a listener. Returns what passes a connection on, or closes it if no route takes it. */
export function compileTcpRoutes(
  listener: string,
  routes: readonly TcpRouteConfig[],
  context: (index: number) => CompileContext,
): NonNullable<Entrance['relay']> {
  const choices = routes.flatMap((route, index) => {
    const compiled = compileTcpRoute(route, index, context(index));
    const names = route.hostnames.length === 0 ? [undefined] : route.hostnames.map(canonicalName);
    return names.map((hostname) => ({ hostname, compiled }));
  });
  const { settings, log } = context(0);
  return (socket, serverName, ended) => {
    const choice = entranceFor(choices, serverName);
    const target = choice && pick(choice.compiled)?.(socket, serverName);
    const failed = observed(
      socket,
      { listener, route: choice?.compiled.name, endpoint: target?.address, serverName },
      ended,
    );
    if (target === undefined) {
      log.debug('proxy::tcp', 'no route or server for a connection', { sni: serverName ?? '' });
      failed(choice === undefined ? 'no route for the connection' : 'no server for the connection');
      socket.destroy();
    } else relayTcp(socket, target, settings.limits, failed);
  };
}

/** Reports the connection of a client when it has ended. Returns what is told why it ends: the first reason counts. */
function observed(
  socket: Socket,
  known: Pick<RelayedConnection, 'listener' | 'route' | 'endpoint' | 'serverName'>,
  ended: RelayEnded | undefined,
): (error: string, detail?: string) => void {
  const started = performance.now();
  const client = clientOf(socket).label;
  let why: { readonly error: string; readonly detail: string | undefined } | undefined;
  socket.once('close', () =>
    ended?.({
      ...known,
      client,
      received: socket.bytesRead,
      sent: socket.bytesWritten,
      duration: performance.now() - started,
      error: why?.error,
      detail: why?.detail,
    }),
  );
  return (error, detail) => {
    why ??= { error, detail };
  };
}

function compileTcpRoute(
  { name, namespace, backends, policies: ofRoute }: TcpRouteConfig,
  index: number,
  context: CompileContext,
): TcpRoute {
  return {
    name: `${namespace ?? 'default'}/${name ?? `route${index}`}`,
    targets: backends.flatMap((backend, index) => {
      const inside = context.at('backends', index);
      const { weight } = backend;
      if (backend.dynamic !== undefined) {
        const [config, at] =
          backend.policies?.backendTLS === undefined
            ? [ofRoute?.backendTLS, context.at('policies', 'backendTLS')]
            : [backend.policies.backendTLS, inside.at('policies', 'backendTLS')];
        return [{ weight, target: namedServer(config && compileBackendTls(config, at)) }];
      }
      const found = addressOf(backend, inside.at('backend'));
      if (found === undefined) return [];
      const { address } = found;
      const [tls, at] =
        [
          [backend.policies?.backendTLS, inside.at('policies', 'backendTLS')] as const,
          [found.backendTLS, inside.at('backend')] as const,
          [ofRoute?.backendTLS, context.at('policies', 'backendTLS')] as const,
        ].find(([config]) => config !== undefined) ?? [];
      const colon = address.lastIndexOf(':');
      const target = {
        address,
        host: address.slice(0, colon).replace(/^\[|\]$/g, ''),
        port: Number(address.slice(colon + 1)),
        tls: tls && at && compileBackendTls(tls, at),
        reachability: new Reachability(address, context.log),
      };
      return [{ weight, target: () => target }];
    }),
  };
}

/** The server that a client names, at the port that it has connected to. */
const namedServer =
  (tls: TcpTarget['tls']): TargetOf =>
  (socket, host) => {
    const { localPort: port } = clientOf(socket).local;
    if (host === undefined || port === undefined) return undefined;
    return { address: `${host}:${port}`, host, port, tls, isNamedByClient: true };
  };

/** The address of a backend, with the TLS of the top-level backend that it may name. */
function addressOf(
  { host, backend }: TcpRouteConfig['backends'][number],
  at: CompileContext,
): { readonly address: string; readonly backendTLS?: BackendTls | undefined } | undefined {
  if (host !== undefined || backend === undefined) return { address: host ?? '' };
  const found = referredHost(backend, at);
  if (found === undefined) return undefined;
  const { host: address, backendTLS, backendAuth } = found;
  const isAddress = HOST_PORT.test(address);
  if (!isAddress || backendAuth !== undefined)
    at.report({
      code: 'AGW0104',
      message: isAddress
        ? `the policy \`backendAuth\` of the backend \`${backend}\` is for requests, but this route passes bytes on`
        : `the backend \`${backend}\` has another address than \`host:port\`, which a TCP route needs`,
      help: 'write the address itself: `host: name:port`',
    });
  return isAddress ? { address, backendTLS } : undefined;
}

function pick({ targets }: TcpRoute): TcpRoute['targets'][number]['target'] | undefined {
  let point = Math.random() * targets.reduce((sum, { weight }) => sum + weight, 0);
  for (const { weight, target } of targets) {
    point -= weight;
    if (point < 0) return target;
  }
  return undefined;
}
