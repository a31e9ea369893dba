/** One line in Prometheus' text format. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** Parses the samples of a text; other lines are ignored. */
export function readMetrics(text: string): Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split('\n')) {
    const [, name, labels = '', value] = LINE.exec(line) ?? [];
    if (name === undefined || Number.isNaN(Number(value))) continue;
    const pairs = [...labels.matchAll(LABEL)].map(
      ([, key = '', quoted = '']) => [key, unescaped(quoted)] as const,
    );
    samples.push({ name, labels: Object.fromEntries(pairs), value: Number(value) });
  }
  return samples;
}

const unescaped = (text: string): string =>
  text.replace(/\\(.)/g, (_, sign: string) => (sign === 'n' ? '\n' : sign));

/** What the names of all metrics start with, which `config.metrics.prefix` sets. */
export function commonPrefix(samples: readonly Sample[]): string {
  const [first, ...others] = samples.map(({ name }) => name);
  let prefix = first ?? '';
  for (const name of others) while (!name.startsWith(prefix)) prefix = prefix.slice(0, -1);
  return prefix;
}

/** Sum of all samples of a name with the given labels. */
export function total(
  samples: readonly Sample[],
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  return samples
    .filter(
      (sample) =>
        sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
    )
    .reduce((sum, { value }) => sum + value, 0);
}
