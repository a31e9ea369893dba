import { CommandError } from '../../core/exit-codes.ts';
import { escapeControls } from '../../core/log.ts';
import type { Run } from '../program.ts';
import { type ProfileOptions, saveProfile } from '../proxy/profile.ts';

interface Options extends ProfileOptions {
  readonly seconds: string;
}

export const run: Run<Options> = (options, context) => {
  const seconds = /^\d{1,3}$/.test(options.seconds) ? Number(options.seconds) : 0;
  if (seconds < 1 || seconds > 300)
    throw new CommandError(
      'usage',
      `invalid --seconds ${escapeControls(options.seconds)}; must be between 1 and 300`,
    );
  return saveProfile('cpu', `/debug/pprof/profile?seconds=${seconds}`, seconds * 1000, options, context);
};
