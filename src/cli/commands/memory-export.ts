import { randomUUID } from 'node:crypto';
import { createWriteStream, renameSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { messageOf } from '../../core/errors.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { membersOf } from '../../core/foreign.ts';
import type { Run } from '../context.ts';
import { lost, type RestOptions, request, streamOf } from '../memory/rest.ts';

interface Options extends RestOptions {
  readonly out?: string;
}

/** Copies everything that calls have stored, as JSON Lines; a file appears when it is complete. */
export const run: Run<Options> = async ({ out, ...options }, context) => {
  const response = await request(options, context, '/export');
  const lines = streamOf(response);
  const cut = (error: unknown): never => {
    throw lost(new URL(response.url), error);
  };
  if (out === undefined) {
    await pipeline(lines, context.stdout, { end: false }).catch(cut);
    return EXIT_CODES.ok.code;
  }
  const path = resolve(context.cwd, out);
  const draft = `${path}.${randomUUID()}.tmp`;
  try {
    await pipeline(lines, createWriteStream(draft, { mode: 0o600, flags: 'wx', flush: true }));
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    if (membersOf(error)['syscall'] === undefined) cut(error);
    throw new CommandError('not_ok', `cannot write ${path}: ${messageOf(error)}`);
  }
  return EXIT_CODES.ok.code;
};
