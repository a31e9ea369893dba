/** A seeded source of numbers from 0 to below `limit`. */
export type Random = (limit: number) => number;

/** A seeded generator (mulberry32). Equal seeds give equal numbers. */
export function randomOf(seed: number): Random {
  let state = seed;
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * limit);
  };
}

export const oneOf = <T>(random: Random, values: readonly T[]): T => values[random(values.length)] as T;

/** One change of a document: at this JSON pointer, this JSON text instead; or the member is missing, or written twice. */
export interface Change {
  readonly at: string;
  readonly to: string | typeof MISSING | typeof TWICE;
}

export const MISSING = Symbol('missing');
export const TWICE = Symbol('twice');

const nested = (open: string, close: string, depth: number): string =>
  `${open.repeat(depth)}1${close.repeat(depth)}`;

/** What a member may be instead, as JSON text: each type, and values at the edge of what a reader expects. */
export const VALUES: readonly Change['to'][] = [
  'null',
  '5',
  '-1',
  '0',
  '1.5',
  '1e308',
  // Parsed as Infinity.
  '1e400',
  '-1e400',
  // More digits than a number of JavaScript has.
  '99999999999999999999',
  '4294967296',
  'true',
  'false',
  '"x"',
  '""',
  // Half a character, and one that ends strings in C.
  String.raw`"\ud800"`,
  String.raw`"a\u0000b\r\nc"`,
  '"__proto__"',
  `"${'é'.repeat(40_000)}"`,
  '[]',
  '[null]',
  '[[]]',
  '[{}]',
  '[5,"x",null]',
  '{}',
  '{"a":null}',
  '{"__proto__":{"a":1},"constructor":5}',
  nested('[', ']', 60),
  nested('{"a":', '}', 60),
  nested('[', ']', 3_000),
  // Deeper than any function that calls itself for each level can go.
  nested('[', ']', 30_000),
  nested('{"a":', '}', 30_000),
  MISSING,
  TWICE,
];

type Members = Readonly<Record<string, unknown>>;
const isContainer = (value: unknown): value is Members | readonly unknown[] =>
  typeof value === 'object' && value !== null;

/** The JSON pointers of a value and everything in it (RFC 6901). */
export function pointersOf(value: unknown, at = ''): string[] {
  const inside = isContainer(value)
    ? Object.entries(value).flatMap(([name, member]) => pointersOf(member, `${at}/${escaped(name)}`))
    : [];
  return [at, ...inside];
}

const escaped = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');

/** Some changes of a document: mostly one, as two often hide each other. Every part of it is equally likely. */
export function changesOf(random: Random, value: unknown): Change[] {
  const pointers = pointersOf(value);
  const count = oneOf(random, [1, 1, 1, 2, 3]);
  return Array.from({ length: count }, () => {
    const at = oneOf(random, pointers);
    // A value of the right type at the wrong place is what type checks alone let pass.
    if (random(6) === 0) return { at, to: JSON.stringify(valueAt(value, oneOf(random, pointers))) };
    return { at, to: oneOf(random, VALUES) };
  });
}

function valueAt(value: unknown, pointer: string): unknown {
  return pointer
    .split('/')
    .slice(1)
    .reduce<unknown>(
      (found, name) => (found as Members)[name.replaceAll('~1', '/').replaceAll('~0', '~')],
      value,
    );
}

/** The document with these changes, as JSON text. The last change of a place counts, and that of what contains it. */
export function changed(value: unknown, changes: readonly Change[]): string {
  const by = new Map<string, Change['to']>(changes.map(({ at, to }) => [at, to]));
  return textOf(value, '', by) ?? '';
}

function textOf(value: unknown, at: string, by: ReadonlyMap<string, Change['to']>): string | undefined {
  const to = by.get(at);
  if (to === MISSING) return undefined;
  if (typeof to === 'string') return to;
  if (!isContainer(value)) return JSON.stringify(value);
  const texts = Object.entries(value).flatMap(([name, member]) => {
    const pointer = `${at}/${escaped(name)}`;
    const text = textOf(member, pointer, by);
    if (text === undefined) return [];
    const one = Array.isArray(value) ? text : `${JSON.stringify(name)}:${text}`;
    return by.get(pointer) === TWICE ? [one, one] : [one];
  });
  return Array.isArray(value) ? `[${texts.join(',')}]` : `{${texts.join(',')}}`;
}

/** How a change is shown: long texts are abbreviated. */
export const shown = ({ at, to }: Change): string => {
  const text = typeof to === 'symbol' ? `(${to.description})` : to;
  return `${at === '' ? 'all' : at} = ${text.length > 80 ? `${text.slice(0, 60)}… (${text.length})` : text}`;
};

/** Cuts bytes at random places; characters and lines are cut, too. */
export function pieces(random: Random, bytes: Buffer): Buffer[] {
  const cuts = Array.from({ length: random(6) }, () => random(bytes.length + 1)).sort((a, b) => a - b);
  return [0, ...cuts].map((start, index) => bytes.subarray(start, cuts[index] ?? bytes.length));
}
