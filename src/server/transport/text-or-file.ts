import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { missingConfigFile, resolveConfigFile } from '../../core/config-file.ts';
import { messageOf } from '../../core/errors.ts';
import type { CompileContext } from '../kernel/compile-context.ts';

/** Schema of a secret: its text, or a file that contains it. */
export const textOrFile = z.union([
  z.string().min(1),
  z.strictObject({
    file: z.string().min(1).describe('File with the text, read when the configuration is loaded.'),
  }),
]);

/** The text. Reports a file that cannot be read. */
export function readText(source: z.output<typeof textOrFile>, context: CompileContext): string | undefined {
  if (typeof source === 'string') return source;
  try {
    return readFileSync(resolveConfigFile(context.folder, source.file), 'utf8').trim();
  } catch (error) {
    context.at('file').report({
      code: 'AGW0107',
      message: missingConfigFile(context.folder, source.file) ?? `cannot read the file: ${messageOf(error)}`,
      help: 'set the path of a file, relative to the configuration file',
    });
    return undefined;
  }
}
