import { editorSchema } from '../../server/config/editor-schema.ts';
import type { Run } from '../context.ts';

export const run: Run<object> = async (_options, { stdout }) => {
  stdout.write(`${JSON.stringify(editorSchema(), null, 2)}\n`);
  return 0;
};
