import { rm, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { errorCode } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { escapeControls } from '../../core/log.ts';
import type { Context } from '../context.ts';
import { Progress } from '../progress.ts';
import { type AdminAddress, type AdminOptions, adminAddress } from './address.ts';
import { ask, notAnAdmin } from './admin-client.ts';

/** Options of both profile commands. */
export interface ProfileOptions extends AdminOptions {
  /** Duration of the measurement in seconds, 1 to 300. */
  readonly seconds: string;
  /** File to write. */
  readonly output?: string;
  /** Upstream's name for the admin port of this machine. */
  readonly port?: string;
}

/** Requests a profile at `path` from the gateway and writes it to a file. */
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
    silence: wait + LIMITS.adminResponseTimeout * 3,
  }).finally(stopCountdown);
  check(address, kind, body);
  const file = options.output ?? `agctl-${kind}-${stamp(new Date())}.pb.gz`;
  const target = resolve(context.cwd, file);
  try {
    await writeFile(target, body, { mode: 0o600 });
  } catch (error) {
    const code = errorCode(error);
    if (code !== 'ENOENT' && code !== 'EISDIR' && code !== 'EACCES') await rm(target, { force: true });
    throw new CommandError(
      'usage',
      `cannot write ${escapeControls(file)}: ${escapeControls(messageOf(error))}`,
      '-o must name another file',
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

/** Displays the remaining time: a countdown on a terminal, otherwise one line. Returns a function that ends it. */
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
  const timer = setInterval(show, LIMITS.progressIntervalTerminal);
  return () => {
    clearInterval(timer);
    progress.clear();
  };
}

/** Accepts gzip, or protobuf whose first field is `sample_type` (upstream's CPU profiles). */
function check({ shown }: AdminAddress, kind: string, body: Buffer): void {
  const isGzip = body[0] === 0x1f && body[1] === 0x8b;
  if (!isGzip && body[0] !== 0x0a) throw notAnAdmin(shown, `its response is not a ${kind} profile`);
}

function stamp(now: Date): string {
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = `${now.getFullYear()}${two(now.getMonth() + 1)}${two(now.getDate())}`;
  return `${day}-${two(now.getHours())}${two(now.getMinutes())}${two(now.getSeconds())}`;
}
