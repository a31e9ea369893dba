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
  /** Why requests were not answered: no recorded one was the same. */
  readonly unmatched: readonly string[];
  close(): Promise<void>;
}

/**
 * Serves a recording of `testGateway` or `agctl record` on free ports of 127.0.0.1.
 *
 * @throws `Error` with the file and line if it is no recording
 */
export async function replayCassette(
  file: string | URL,
  { ignore = [], timing = false }: ReplayOptions = {},
): Promise<ReplayedCassette> {
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
