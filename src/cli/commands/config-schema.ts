import { configJsonSchema } from '../../server/config/json-schema.ts';
import type { Run } from '../context.ts';

export const run: Run<object> = async (_options, { stdout }) => {
  stdout.write(`${JSON.stringify(configJsonSchema(), null, 2)}\n`);
  return 0;
};
