import { messageOf } from '../../core/errors.ts';
import { CommandError } from '../../core/exit-codes.ts';
import { membersOf } from '../../core/foreign.ts';
import { asUsage } from './options.ts';

/** An error of a command on models: wrong input, or a disk that is full, or a folder that cannot be read or written. */
export function asModelError(error: unknown): unknown {
  if (typeof membersOf(error)['syscall'] !== 'string') return asUsage(error);
  return new CommandError('not_ok', messageOf(error), 'MEMORY_MODELS_DIR names the folder of models');
}
