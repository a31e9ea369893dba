import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { missingConfigFile, resolveConfigFile } from '../../core/config-file.ts';
import { messageOf } from '../../core/errors.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import { isHeaderValue } from '../kernel/header-list.ts';

const text = z.string().min(1);
const inFile = z.strictObject({
  file: z.string().min(1).describe('File with the token, read when the configuration is loaded.'),
});

/** A credential for a server: its text, or a file that contains it; upstream's form has both in `value`. */
export const credential = z.union([
  text,
  inFile,
  z
    .strictObject({ value: z.union([text, inFile]).describe('The token, or `{ file: … }`.') })
    .meta({ elsewhere: { location: 'remove it: the credential is in the header that the backend expects' } }),
]);

/** `backendAuth`: what a backend gets instead of the client's credential. */
export const backendAuthSchema = z.strictObject({
  key: credential
    .meta({ secret: true })
    .describe(
      'Bearer token, or `{ file: … }` with a file that contains it. Also in `value`: `{ value: … }`.',
    ),
});

/** The text of a credential. Reports a file that cannot be read, and a text that a header cannot have. */
export function readCredential(
  key: z.output<typeof credential>,
  context: CompileContext,
): string | undefined {
  if (typeof key === 'object' && 'value' in key) return readCredential(key.value, context.at('value'));
  let text: string;
  try {
    text =
      typeof key === 'string'
        ? key
        : readFileSync(resolveConfigFile(context.folder, key.file), 'utf8').trim();
  } catch (error) {
    const missing = typeof key === 'string' ? undefined : missingConfigFile(context.folder, key.file);
    context.at('file').report({
      code: 'AGW0107',
      message: missing ?? `cannot read the file: ${messageOf(error)}`,
      help: 'set the path of a file with the token, relative to the configuration file',
    });
    return undefined;
  }
  if (text !== '' && isHeaderValue(text)) return text;
  context.report({
    code: 'AGW0104',
    message: 'the credential is empty or contains characters that a header cannot have',
    help: 'set it to the token alone, on one line',
  });
  return undefined;
}
