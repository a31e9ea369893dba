/** One line of a metrics text. */
export interface ParsedSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface ParsedFamily {
  readonly type: string;
  readonly help: string;
  readonly samples: readonly ParsedSample[];
}

const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  counter: ['_total'],
  gauge: [''],
  histogram: ['_sum', '_count', '_bucket'],
};

/**
 * Reads OpenMetrics text as strictly as the specification is ("Text Format", OpenMetrics 1.0), and checks what
 * `promtool check metrics` checks. Throws with the line at fault.
 */
export function parseMetrics(text: string, prefix = 'gw_'): Map<string, ParsedFamily> {
  if (!text.endsWith('\n# EOF\n')) throw new Error('no `# EOF` at the end');
  const families = new Map<string, { type: string; help: string; samples: ParsedSample[] }>();
  const series = new Set<string>();
  let current = '';
  for (const line of text.slice(0, -'# EOF\n'.length).split('\n').slice(0, -1)) {
    const refuse = (why: string): Error => new Error(`${why}: ${line}`);
    const meta = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/.exec(line);
    if (meta !== null) {
      const [, word, name = '', rest = ''] = meta;
      if (word === 'HELP') {
        if (families.has(name)) throw refuse('second HELP');
        families.set(name, { type: '', help: rest, samples: [] });
        current = name;
        continue;
      }
      const family = families.get(name);
      if (name !== current || family === undefined || family.type !== '')
        throw refuse('TYPE without its HELP');
      if (!Object.hasOwn(SUFFIXES, rest)) throw refuse('unknown type');
      family.type = rest;
      continue;
    }
    const sample = parseSample(line);
    const family = families.get(current);
    if (sample === undefined || family === undefined) throw refuse('not a sample');
    const suffixes = (SUFFIXES[family.type] ?? []).map((suffix) => current + suffix);
    if (!suffixes.includes(sample.name)) throw refuse(`not of the family ${current}`);
    const key = `${sample.name}${JSON.stringify(Object.entries(sample.labels).sort())}`;
    if (series.has(key)) throw refuse('second time');
    series.add(key);
    family.samples.push(sample);
  }
  for (const [name, family] of families) checkFamily(name, family, prefix);
  return families;
}

function parseSample(line: string): ParsedSample | undefined {
  const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
  if (match === null) return undefined;
  const [, name = '', inside, number = ''] = match;
  const labels: Record<string, string> = {};
  let rest = inside ?? '';
  while (rest !== '') {
    const label = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"(?:,(?=.)|$)/.exec(rest);
    if (label === null || Object.hasOwn(labels, label[1] as string)) return undefined;
    labels[label[1] as string] = (label[2] as string).replace(/\\(.)/g, (_, c: string) =>
      c === 'n' ? '\n' : c,
    );
    rest = rest.slice(label[0].length);
  }
  const value = number === '+Inf' ? Number.POSITIVE_INFINITY : Number(number);
  return Number.isNaN(value) ? undefined : { name, labels, value };
}

/** Rules of promtool's linter, and those about histograms of OpenMetrics. */
function checkFamily(name: string, { type, help, samples }: ParsedFamily, prefix: string): void {
  const refuse = (why: string): Error => new Error(`${name}: ${why}`);
  if (type === '' || !help.endsWith('.') || samples.length === 0) throw refuse('no type, help or samples');
  if (/[A-Z]/.test(name) || !name.startsWith(prefix)) throw refuse('its name');
  if (/_(?:total|sum|count|bucket|milliseconds|minutes|kilobytes)$/.test(name))
    throw refuse('a reserved ending');
  for (const { name: sample, labels, value } of samples) {
    if ('le' in labels !== sample.endsWith('_bucket')) throw refuse('`le` at the wrong place');
    if (type === 'counter' && !(value >= 0)) throw refuse('a counter below zero');
    if (Object.values(labels).includes('')) throw refuse(`an empty label: ${JSON.stringify(labels)}`);
  }
  if (type === 'histogram') checkHistogram(samples, refuse);
}

function checkHistogram(samples: readonly ParsedSample[], refuse: (why: string) => Error): void {
  const groups = Map.groupBy(samples, ({ labels: { le, ...rest } }) => JSON.stringify(rest));
  for (const [labels, group] of groups) {
    const ends = group.map(({ name }) => name.slice(name.lastIndexOf('_')));
    if (ends[0] !== '_sum' || ends[1] !== '_count') throw refuse(`not in order ${labels}`);
    const buckets = group.slice(2).map(({ labels: { le = '' }, value }) => ({ le, value }));
    const bounds = buckets.map(({ le }) => (le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le)));
    const isRising = (list: readonly number[], strictly: boolean): boolean =>
      list.every(
        (value, index) => index === 0 || value - (list[index - 1] as number) >= (strictly ? 1e-12 : 0),
      );
    if (bounds.at(-1) !== Number.POSITIVE_INFINITY) throw refuse(`no +Inf ${labels}`);
    if (!isRising(bounds.slice(0, -1), true)) throw refuse(`bounds ${labels}`);
    if (
      !isRising(
        buckets.map(({ value }) => value),
        false,
      )
    )
      throw refuse(`not cumulative ${labels}`);
    if (buckets.at(-1)?.value !== group[1]?.value) throw refuse(`+Inf is not the count ${labels}`);
    if (!buckets.every(({ le }) => le === '+Inf' || le.includes('.')))
      throw refuse(`le is no float ${labels}`);
  }
}

/** The value of the one sample that has these labels, among any others; 0 when there is none. */
export function sampleValue(
  families: Map<string, ParsedFamily>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  const found = [...families.values()]
    .flatMap(({ samples }) => samples)
    .filter((sample) => sample.name === name)
    .filter((sample) => Object.entries(labels).every(([key, value]) => sample.labels[key] === value));
  if (found.length > 1) throw new Error(`${found.length} samples of ${name}`);
  return found[0]?.value ?? 0;
}
