import { CommandError } from '../../core/exit-codes.ts';
import { escapeControls } from '../../core/log.ts';

/** Milliseconds of an option such as `--for 10m`. The schema of configurations says what a time span is. */
export async function spanOption(option: string, text: string): Promise<number> {
  const { durationSchema } = await import('../../core/schema/duration.ts');
  const read = durationSchema.safeParse(text);
  if (read.success) return read.data;
  throw new CommandError(
    'usage',
    `${option} ${escapeControls(text)} is not a time span`,
    'such as 300ms, 30s, 10m or 1h30m',
  );
}
