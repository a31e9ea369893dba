import { z } from 'zod';
import { messageOf } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import { missingConfigFile, resolveConfigFile } from '../kernel/files/config-file.ts';
import { readRegularFile } from '../kernel/files/json-file.ts';

/** Schema of a secret: its text, or a file that contains it. */
export const textOrFile = z.union([
  z.string().min(1),
  z.strictObject({
    file: z
      .string()
      .min(1)
      .meta({ secret: false })
      .describe('File with the text. It is read again when it changes.'),
  }),
]);

/** The text, without white space around it if it is in a file. Reports a file that cannot be read, or is empty. */
export function readText(source: z.output<typeof textOrFile>, context: CompileContext): string | undefined {
  if (typeof source === 'string') return source;
  const file = resolveConfigFile(context.folder, source.file);
  context.dependsOn(file);
  try {
    const text = readRegularFile(file, LIMITS.credentialFileBytes).trim();
    if (text === '') {
      context.at('file').report({
        code: 'AGW0104',
        message: 'the file is empty',
        help: 'write the secret into it',
      });
      return undefined;
    }
    context.settings.secretNames.values.add(text);
    return text;
  } catch (error) {
    context.at('file').report({
      code: 'AGW0107',
      message: missingConfigFile(context.folder, source.file) ?? `cannot read the file: ${messageOf(error)}`,
      help: 'set the path of a file, relative to the configuration file',
    });
    return undefined;
  }
}
