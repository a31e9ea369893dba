import { messageOf } from '../../core/errors.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { errorCode, membersOf } from '../../core/foreign.ts';
import { isLoopback } from '../../core/listen.ts';
import { counted } from '../../core/render/counted.ts';
import { VERSION } from '../../core/version.ts';
import type { Cassette } from '../../library/cassette/format.ts';
import { IgnoredPathError } from '../../library/cassette/ignored.ts';
import { type ServedReplay, serveReplay } from '../../library/cassette/serve-replay.ts';
import { read } from '../cassette/read.ts';
import type { Run } from '../context.ts';

interface Options {
  readonly operands?: readonly string[];
  readonly port?: string;
  readonly host: string;
  readonly fast?: boolean;
  readonly ignore?: readonly string[];
}

/** Serves a recording until a signal stops it. */
export const run: Run<Options> = async (
  { operands = [], port, host, fast = false, ignore = [] },
  context,
) => {
  const started = performance.now();
  const [file = ''] = operands;
  const cassette = read(file, context.cwd);
  const { stderr } = context;
  const served = await open(cassette, {
    host,
    ...(port !== undefined && { port: portOf(port) }),
    isFast: fast,
    ignore,
    onUnmatched: (explanation) => void stderr.write(`${explanation}\n`),
  });
  const stopped = untilSignal();
  const lines = Object.entries(served.urls).map(([name, url]) => `  ${name.padEnd(12)} ${url}\n`);
  const warning = isLoopback(host) ? '' : `  ! whoever reaches ${host} can read the recording\n`;
  stderr.write(
    `agctl ${VERSION}   ${file}   ${counted(cassette.exchanges.length, 'exchange')}\n\n${lines.join('')}${warning}\nready in ${Math.round(performance.now() - started)} ms. Ctrl-C stops.\n`,
  );
  await stopped;
  await served.close();
  return EXIT_CODES.ok.code;
};

async function open(cassette: Cassette, settings: Parameters<typeof serveReplay>[1]): Promise<ServedReplay> {
  try {
    return await serveReplay(cassette, settings);
  } catch (error) {
    if (error instanceof IgnoredPathError) throw new CommandError('usage', `--ignore ${error.message}`);
    if (errorCode(error) === 'EADDRINUSE')
      throw new CommandError(
        'not_ok',
        `port ${String(membersOf(error)['port'])} is already in use`,
        'choose others with --port, or --port 0 for free ones',
      );
    throw new CommandError('not_ok', `cannot listen: ${messageOf(error)}`);
  }
}

function portOf(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (port <= 65_535) return port;
  throw new CommandError('usage', `--port: expected 0 to 65535, found ${text}`);
}

function untilSignal(): Promise<void> {
  return new Promise((resolved) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolved());
  });
}
