import { z } from 'zod';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { isHeaderValue } from '../../kernel/request/header-list.ts';
import { readText, textOrFile } from '../text-or-file.ts';

/** A credential for a server: its text, or a file that contains it; upstream's form has both in `value`. */
export const credential = z.union([
  ...textOrFile.options,
  z
    .strictObject({ value: textOrFile.describe('The token, or `{ file: … }`.') })
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
  const text = readText(key, context);
  if (text === undefined) return undefined;
  if (text !== '' && isHeaderValue(text)) return text;
  context.report({
    code: 'AGW0104',
    message: 'the credential is empty or contains characters that a header cannot have',
    help: 'set it to the token alone, on one line',
  });
  return undefined;
}
