import { resolve } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import { CommandError } from '../../core/exit-codes.ts';
import { errorCode } from '../../core/foreign.ts';
import { counted } from '../../core/render/counted.ts';
import { CassetteFile } from '../../library/cassette/cassette-file.ts';
import { CassetteRecorder } from '../../library/cassette/recorder.ts';
import type { Context, Run } from '../context.ts';
import { run as serve } from './gateway-serve.ts';

interface Options {
  readonly file?: string;
  readonly out: string;
  readonly force?: boolean;
  readonly color: string;
}

/** Runs the gateway as `serve` does, and records its requests until a signal stops it. */
export const run: Run<Options> = async ({ out, force = false, ...options }, context) => {
  const recorder = new CassetteRecorder(open(out, force, context), (problem) =>
    context.stderr.write(`${problem}; nothing more is recorded, and the gateway goes on\n`),
  );
  context.stderr.write(`recording to ${out}\n`);
  try {
    return await serve({ ...options, recorder }, context);
  } finally {
    const count = await closed(recorder);
    if (count !== undefined) context.stderr.write(`${counted(count, 'exchange')} recorded in ${out}\n`);
  }
};

function open(path: string, replace: boolean, { cwd }: Context): CassetteFile {
  try {
    return new CassetteFile(resolve(cwd, path), replace);
  } catch (error) {
    if (errorCode(error) === 'EEXIST')
      throw new CommandError(
        'usage',
        `${path} exists already`,
        'choose another file, or --force to replace it',
      );
    throw new CommandError('usage', `${path} cannot be written: ${messageOf(error)}`);
  }
}

async function closed(recorder: CassetteRecorder): Promise<number | undefined> {
  try {
    return await recorder.close();
  } catch (error) {
    throw new CommandError('not_ok', messageOf(error));
  }
}
