import type { Counter, Gauge, Registry } from 'prom-client';
import { type FamilyInfo, promClient } from './family.ts';

/** A metric of the process or the gateway that is read at each scrape. */
export interface ReadMetric extends FamilyInfo {
  /** Default: a gauge. */
  readonly type?: 'counter';
  readonly labels?: Readonly<Record<string, string>>;
  /** The value now. While it is undefined, the metric is left out. */
  read(): number | undefined;
}

/** A registry of prom-client with these metrics. */
export function registryOf(metrics: readonly ReadMetric[]): Registry {
  const { Registry, Counter, Gauge } = promClient();
  const registry = new Registry();
  for (const { name, help, type, labels = {}, read } of metrics) {
    const options = { name, help: `${help}.`, labelNames: Object.keys(labels), registers: [registry] };
    if (type === 'counter')
      new Counter({
        ...options,
        collect(this: Counter) {
          this.remove(labels);
          const value = read();
          if (value !== undefined) this.inc(labels, value);
        },
      });
    else
      new Gauge({
        ...options,
        collect(this: Gauge) {
          this.remove(labels);
          const value = read();
          if (value !== undefined) this.set(labels, value);
        },
      });
  }
  return registry;
}
