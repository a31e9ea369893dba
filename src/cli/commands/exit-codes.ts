import { exitCodeTable } from '../../core/exit-codes.ts';
import type { Run } from '../context.ts';

export const run: Run<object> = async (_options, { stdout }) => {
  stdout.write(`${exitCodeTable()}\n`);
  return 0;
};
