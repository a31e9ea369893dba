// The options of a benchmark, with an error that says what was expected.
import { parseArgs } from 'node:util';

/**
 * A kind of option: `read` returns the value of a text, or undefined if it is none.
 *
 * @typedef {{ fallback?: string, multiple?: boolean, expected: string, read: (text: string) => unknown }} Kind
 */

/** Any text, such as a path. */
export const text = (fallback) => ({ fallback, expected: 'a text', read: (given) => given || undefined });

/** The same, as often as it is given: an array. */
export const texts = () => ({ ...text(), multiple: true });

/** A number from `least`; whole if it has no fraction itself. */
export const number = (fallback, least = 1) => ({
  fallback: String(fallback),
  expected: `a number from ${least}, such as ${fallback}`,
  read: (given) => numberIn(given, least),
});

/** Numbers, separated by commas: an array. */
export const numbers = (...fallback) => ({
  fallback: fallback.join(),
  expected: `numbers from 1, such as ${fallback.join()}`,
  read: (given) => all(given, (one) => numberIn(one, 1)),
});

/** Some of these names, separated by commas: an array. All by default. */
export const someOf = (names) => ({
  fallback: names.join(),
  expected: `some of ${names.join()}`,
  read: (given) => all(given, (one) => names.find((name) => name === one)),
});

/** One of these names. The first one by default. */
export const oneOf = (names) => ({
  fallback: names[0],
  expected: `one of ${names.join(', ')}`,
  read: (given) => names.find((name) => name === given),
});

function numberIn(given, least) {
  const value = Number(given);
  return given.trim() !== '' && value >= least && Number.isFinite(value) ? value : undefined;
}

function all(given, read) {
  const values = given.split(',').map((one) => read(one.trim()));
  return values.includes(undefined) ? undefined : values;
}

/**
 * Reads the options of a benchmark, by name. Ends the process with code 2 if one is wrong.
 *
 * @param {Record<string, Kind>} kinds
 */
export function readOptions(kinds, args = process.argv.slice(2)) {
  const names = Object.keys(kinds).map((name) => `--${name}`);
  try {
    const { values } = parseArgs({
      args,
      options: Object.fromEntries(
        Object.entries(kinds).map(([name, { multiple = false }]) => [name, { type: 'string', multiple }]),
      ),
    });
    return Object.fromEntries(
      Object.entries(kinds).map(([name, { fallback, multiple, expected, read }]) => {
        const given = values[name] ?? (multiple ? [] : fallback);
        if (given === undefined) return [name, undefined];
        const value = multiple ? given : read(given);
        if (value === undefined)
          throw new Error(`--${name}: expected ${expected}, not ${JSON.stringify(given)}`);
        return [name, value];
      }),
    );
  } catch (error) {
    process.stderr.write(`${error.message}\nThis benchmark takes ${names.join(', ')}.\n`);
    process.exit(2);
  }
}
