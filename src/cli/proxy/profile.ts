import { rm, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { LIMITS } from '../../core/limits.ts';
import { escapeControls } from '../../core/log.ts';
import type { Context } from '../context.ts';
import { Progress } from '../progress.ts';
import { type AdminAddress, type AdminOptions, adminAddress } from './address.ts';
import { ask, notAnAdmin } from './admin-client.ts';

/** Options of both profiles. */
export interface ProfileOptions extends AdminOptions {
  /** How long to measure. */
  readonly seconds: string;
  /** File to write. */
  readonly output?: string;
  /** Upstream's name for the admin port here. */
  readonly port?: string;
}

/** Has the gateway measure at `path`, and writes the profile to a file. */
export async function saveProfile(
  kind: 'cpu' | 'heap',
  path: string,
  options: ProfileOptions,
  context: Context,
): Promise<number> {
  const { port } = options;
  const seconds = secondsOf(options);
  const wait = seconds * 1000;
  const address = adminAddress(port === undefined ? options : { ...options, proxyAdminPort: port }, context);
  const stopCountdown = wait > 1000 ? countDown(address.shown, wait, context) : () => undefined;
  const { body } = await ask(address, {
    method: 'GET',
    path: `${path}?seconds=${seconds}`,
    silence: wait + LIMITS.adminAnswer * 3,
  }).finally(stopCountdown);
  check(address, kind, body);
  const file = options.output ?? `agctl-${kind}-${stamp(new Date())}.pb.gz`;
  const target = resolve(context.cwd, file);
  try {
    await writeFile(target, body);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT' && code !== 'EISDIR' && code !== 'EACCES') await rm(target, { force: true });
    throw new CommandError(
      'usage',
      `cannot write ${escapeControls(file)}: ${escapeControls(message)}`,
      '-o names another file',
    );
  }
  context.stdout.write(`Wrote ${kind} profile to ${escapeControls(file)}\n`);
  return EXIT_CODES.ok.code;
}

function secondsOf({ seconds: text }: ProfileOptions): number {
  const seconds = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (seconds < 1 || seconds > 300)
    throw new CommandError('usage', `invalid --seconds ${escapeControls(text)}; must be between 1 and 300`);
  return seconds;
}

/** Says how long it takes: a countdown at a terminal, one line elsewhere. Returns what ends it. */
function countDown(shown: string, wait: number, context: Context): () => void {
  const progress = new Progress(context);
  if (!progress.isTerminal) {
    context.stderr.write(`profiling ${shown} for ${wait / 1000} s\n`);
    return () => undefined;
  }
  const end = performance.now() + wait;
  const show = (): void => {
    const left = Math.max(0, Math.round((end - performance.now()) / 1000));
    progress.show(`profiling ${shown}: ${left} s left`);
  };
  show();
  const timer = setInterval(show, LIMITS.progressTick);
  return () => {
    clearInterval(timer);
    progress.clear();
  };
}

/** Gzip, or protobuf whose first field is `sample_type` (upstream sends CPU profiles so). */
function check({ shown }: AdminAddress, kind: string, body: Buffer): void {
  const isGzip = body[0] === 0x1f && body[1] === 0x8b;
  if (!isGzip && body[0] !== 0x0a) throw notAnAdmin(shown, `what it sends is no ${kind} profile`);
}

function stamp(now: Date): string {
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = `${now.getFullYear()}${two(now.getMonth() + 1)}${two(now.getDate())}`;
  return `${day}-${two(now.getHours())}${two(now.getMinutes())}${two(now.getSeconds())}`;
}
