import { CommandError } from '../../core/exit-codes.ts';
import { escapeControls } from '../../core/log.ts';

/** Parses a duration option such as `--for 10m` to milliseconds, in the format of the configuration. */
export async function spanOption(option: string, text: string): Promise<number> {
  const { durationSchema } = await import('../../core/duration.ts');
  const read = durationSchema.safeParse(text);
  if (read.success) return read.data;
  throw new CommandError(
    'usage',
    `${option} ${escapeControls(text)} is not a duration`,
    'for example 300ms, 30s, 10m or 1h30m',
  );
}
