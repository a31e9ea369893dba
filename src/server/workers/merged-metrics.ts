import { type MetricSource, mergeValues } from '../observe/metrics/exposition.ts';
import type { MetricValues } from '../observe/metrics/family.ts';
import { encodeMetrics } from '../observe/metrics/protobuf.ts';
import { Slices } from '../observe/metrics/slices.ts';
import { printed, renderMetrics } from '../observe/metrics/text.ts';

/** Metrics of several processes as one. */
export class MergedMetrics {
  /** Counts of workers that have ended: a counter must not fall. */
  #ended: Promise<readonly MetricValues[]> = Promise.resolve([]);

  /** A worker has ended, whose metrics were last read as `metrics`. */
  workerEnded(metrics: readonly MetricValues[]): void {
    const counts = metrics.filter(({ type }) => String(type) !== 'gauge');
    this.#ended = this.#ended.then((before) => mergeAll([before, counts]));
  }

  /** The metrics of processes as those of one. */
  async read(processes: readonly (readonly MetricValues[])[]): Promise<readonly MetricValues[]> {
    return mergeAll([...processes, await this.#ended]);
  }

  /** Renders the metrics of processes as OpenMetrics text; the first one has those that are not added up. */
  async render(processes: readonly (readonly MetricValues[])[]): Promise<string> {
    const merged = await mergeAll([...processes, await this.#ended]);
    return renderMetrics(merged.map(printed));
  }

  /** Encodes what `render` renders in the Prometheus protobuf format. */
  async encode(processes: readonly (readonly MetricValues[])[]): Promise<Buffer> {
    return encodeMetrics(await this.#sources(processes));
  }

  async #sources(processes: readonly (readonly MetricValues[])[]): Promise<MetricSource[]> {
    const merged = await this.read(processes);
    return merged.map((metric) => () => metric);
  }
}

async function mergeAll(processes: readonly (readonly MetricValues[])[]): Promise<MetricValues[]> {
  const byName = new Map<string, MetricValues[]>();
  for (const metric of processes.flat()) {
    const known = byName.get(metric.name);
    if (known === undefined) byName.set(metric.name, [metric]);
    else known.push(metric);
  }
  const merged: MetricValues[] = [];
  const slices = new Slices();
  for (const metrics of byName.values()) merged.push(...[(await mergeValues(metrics, slices)) ?? []].flat());
  return merged;
}
