import type { ListenerPlan } from '../config/plan/plan.ts';
import type { Entrance } from '../transport/entrance.ts';
import { compileServerTls, type ReloadedTls } from '../transport/server-tls.ts';
import type { ContextOptions } from './compile-context.ts';
import type { ComponentCache } from './component-cache.ts';

/** How connections reach a listener. */
export interface CompiledEntrance extends Entrance {
  readonly tls: ReloadedTls | undefined;
}

/** Reads the certificate of a listener. It is kept across reloads of the configuration, and read again when it changes. */
export function compileEntrance(
  { name, key, hostname, tls, path }: ListenerPlan,
  options: ContextOptions,
  components: ComponentCache,
): CompiledEntrance {
  const site = { options, path: [...path, 'tls'], hostnames: NO_NAMES, expressions: [] };
  return {
    name,
    hostname,
    tls: tls && components.get(`${key}/tls`, [tls], site, (inside) => compileServerTls(tls, {}, inside)),
  };
}

const NO_NAMES: ReadonlySet<string> = new Set();
