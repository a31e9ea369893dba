import { Writable } from 'node:stream';
import { main } from '../../src/cli/main.ts';

/** A command that ran in this process. */
export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RanOptions {
  readonly env?: Record<string, string | undefined>;
  readonly cwd?: string;
  /** What is printed so far, for what waits for it. */
  readonly live?: { stdout: string; stderr: string };
  /** Stdout says that it is a terminal. */
  readonly isTTY?: boolean;
}

/** Runs `agctl` in this process: everything of the command except its start. */
export async function cli(
  args: readonly string[],
  { env = {}, cwd = '/', live = { stdout: '', stderr: '' }, isTTY = false }: RanOptions = {},
): Promise<Ran> {
  const sink = (name: 'stdout' | 'stderr'): Writable =>
    Object.assign(
      new Writable({
        decodeStrings: false,
        write(chunk, _encoding, done) {
          live[name] += String(chunk);
          done();
        },
      }),
      { isTTY, columns: 100 },
    );
  const code = await main(args, { stdout: sink('stdout'), stderr: sink('stderr'), env, cwd });
  return { code, ...live };
}
