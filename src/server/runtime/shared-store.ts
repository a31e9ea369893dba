import type { Config } from '../config/schema.ts';
import { sharedStore } from '../kernel/shared-store.ts';
import type { Metrics } from '../observe/metrics/metrics.ts';
import { RedisStore } from '../transport/redis/redis-store.ts';
import { compileAddress } from '../transport/redis/settings.ts';
import { type ContextOptions, createContext } from './compile-context.ts';

/** Creates the store of `config.shared`, which the gateway connects when it starts. A reload keeps it. */
export function createSharedStore(config: Config['config']['shared'], options: ContextOptions): void {
  if (config === undefined) return;
  const { settings, log } = options;
  const context = createContext(options, ['config', 'shared'], new Set(), []);
  const count = settings.counter('sharedStoreMisses');
  const { failureMode, prefix, timeout } = config;
  const store = new RedisStore({
    address: compileAddress(config, context),
    prefix,
    timeout,
    closed: new Set((['rateLimits', 'sessions'] as const).filter((use) => failureMode[use] === 'failClosed')),
    limits: settings.limits,
    log,
    meter: settings.callMeter('Shared', 'Redis'),
    missed: (use, outcome) => count([use, outcome]),
  });
  sharedStore.set(settings, store);
}

/** Connects the store, if there is one, and shows in the metrics whether it is available. */
export async function openSharedStore(settings: ContextOptions['settings'], metrics: Metrics): Promise<void> {
  const store = sharedStore.get(settings);
  if (store === undefined) return;
  metrics.sharedStoreAvailable = () => store.outage === undefined;
  await store.open();
}
