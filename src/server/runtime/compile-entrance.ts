import type { Path } from '../../core/diagnostic.ts';
import type { ListenerPlan, TcpRoutePlan } from '../config/plan/plan.ts';
import type { Entrance } from '../transport/listener/entrance.ts';
import { compileTcpRoutes } from '../transport/tcp-routes.ts';
import { compileServerTls, type ReloadedTls, type TlsDefaults } from '../transport/tls/server-tls.ts';
import { type ContextOptions, createContext } from './compile-context.ts';
import type { ComponentCache } from './component-cache.ts';

/** How connections reach a listener. */
export interface CompiledEntrance extends Entrance {
  readonly tls: ReloadedTls | undefined;
}

/** Reads the certificate of a listener. It is kept across reloads of the configuration, and read again when it changes. */
export function compileEntrance(
  { name, key, hostname, protocol, tls, tcpRoutes, path }: ListenerPlan,
  ofAll: TlsDefaults | undefined,
  options: ContextOptions,
  components: ComponentCache,
): CompiledEntrance {
  const site = { options, path: [...path, 'tls'], hostnames: NO_NAMES, expressions: [] };
  const isTcp = protocol === 'TCP' || protocol === 'TLS';
  const defaults = isTcp ? { ...ofAll, alpn: [] } : { ...ofAll };
  return {
    name,
    hostname,
    ...(isTcp && { relay: compileRelay(name, tcpRoutes, path, options) }),
    tls:
      tls &&
      components.get(`${key}/tls`, [tls, defaults], site, (inside) =>
        compileServerTls(tls, defaults, inside),
      ),
  };
}

function compileRelay(
  listener: string,
  routes: readonly TcpRoutePlan[],
  path: Path,
  options: ContextOptions,
): NonNullable<Entrance['relay']> {
  const context = (index: number) => createContext(options, routes[index]?.path ?? path, NO_NAMES, []);
  return compileTcpRoutes(
    listener,
    routes.map(({ config }) => config),
    context,
  );
}

const NO_NAMES: ReadonlySet<string> = new Set();
