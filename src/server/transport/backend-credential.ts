import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import { messageOf } from '../../core/errors.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import { isHeaderValue } from '../kernel/header-list.ts';

/** `backendAuth`: the credential that a backend gets instead of that of the client. */
export const backendAuthSchema = z.strictObject({
  key: z
    .union([
      z.string().min(1),
      z.strictObject({
        file: z.string().min(1).describe('File with the token, read when the configuration is loaded.'),
      }),
    ])
    .meta({ secret: true })
    .describe('Bearer token, or `{ file: … }` with a file that contains it.'),
});

/** The token of `backendAuth`. Reports a file that cannot be read and text that no header can have, as undefined. */
export function readCredential(
  { key }: z.output<typeof backendAuthSchema>,
  context: CompileContext,
): string | undefined {
  let text: string;
  try {
    text = typeof key === 'string' ? key : readFileSync(resolve(context.folder, key.file), 'utf8').trim();
  } catch (error) {
    context.at('key', 'file').report({
      code: 'AGW0107',
      message: `cannot read the file: ${messageOf(error)}`,
      help: 'set the path of a file with the token, relative to the configuration file',
    });
    return undefined;
  }
  if (text !== '' && isHeaderValue(text)) return text;
  context.at('key').report({
    code: 'AGW0104',
    message: 'the credential is empty or contains characters that a header cannot have',
    help: 'set it to the token alone, on one line',
  });
  return undefined;
}
