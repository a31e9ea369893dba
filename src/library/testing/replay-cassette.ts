import { fileURLToPath } from 'node:url';
import { readCassette } from '../cassette/read-cassette.ts';
import { serveReplay } from '../cassette/serve-replay.ts';

/** Options of `replayCassette`. */
export interface ReplayOptions {
  /** Paths of members that may differ from the recorded request: `metadata.run`, `messages[*].id`, `**.created`. */
  readonly ignore?: readonly string[];
  /** Whether streams have the pauses that they had. Default: false. */
  readonly timing?: boolean;
}

/** A recording that answers in place of the gateway. */
export interface ReplayedCassette extends AsyncDisposable {
  /** Origin of its first gateway, such as `http://127.0.0.1:40000`. */
  readonly url: string;
  /** The same of each gateway of the recording, by its name. */
  readonly urls: Readonly<Record<string, string>>;
  /** Why requests were not answered: no recorded one was the same, or the recorded client had left before an answer. */
  readonly unmatched: readonly string[];
  close(): Promise<void>;
}

/**
 * Serves a recording of `testGateway` or `agctl record` on free ports of 127.0.0.1.
 *
 * @throws `Error` with the file and line if it is not a recording, `TypeError` for invalid options
 */
export async function replayCassette(
  file: string | URL,
  options: ReplayOptions = {},
): Promise<ReplayedCassette> {
  checkOptions(options);
  const { ignore = [], timing = false } = options;
  const unmatched: string[] = [];
  const cassette = readCassette(file instanceof URL ? fileURLToPath(file) : file);
  const { urls, close } = await serveReplay(cassette, {
    port: 0,
    ignore,
    isFast: !timing,
    onUnmatched: (explanation) => void unmatched.push(explanation),
  });
  return { url: Object.values(urls)[0] ?? '', urls, unmatched, close, [Symbol.asyncDispose]: close };
}

/** Callers without types give others too. @throws TypeError */
function checkOptions(options: object): void {
  for (const [name, value] of Object.entries(options)) {
    const expected = EXPECTED[name];
    if (expected === undefined)
      throw new TypeError(
        `replayCassette: no option \`${name}\`, expected ${Object.keys(EXPECTED).join(' or ')}`,
      );
    if (value !== undefined && !expected.isMet(value))
      throw new TypeError(
        `replayCassette: \`${name}\`: expected ${expected.what}, found ${JSON.stringify(value)}`,
      );
  }
}

const EXPECTED: Readonly<Record<string, { readonly what: string; isMet(value: unknown): boolean }>> = {
  ignore: {
    what: "a list of paths such as ['metadata.run']",
    isMet: (value) => Array.isArray(value) && value.every((path) => typeof path === 'string'),
  },
  timing: { what: 'true or false', isMet: (value) => typeof value === 'boolean' },
};
