import { z } from 'zod';
import { missingConfigFile, resolveConfigFile } from '../../../core/config-file.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { Policy } from '../../kernel/request-context.ts';
import { type DocumentClient, readDocument } from '../../transport/document-client.ts';
import type { KeySource } from './key-set.ts';

/** Schema of an http or https URL. */
export const httpUrl = z.url({ protocol: /^https?$/, error: 'expected an http or https URL' });

/** Schema of a key set, for all policies that validate tokens. */
export const jwksSchema = z.union([
  z.string().min(1),
  z.strictObject({ url: httpUrl.describe('URL of the key set.') }),
  z.strictObject({ file: z.string().min(1).describe('File with the key set.') }),
]);

export type Jwks = z.output<typeof jwksSchema>;

/** Reads a configured key set from where it is. Loading a set in the configuration that is not JSON fails. */
export function keySource(jwks: Jwks, folder: string, client: DocumentClient): KeySource {
  if (typeof jwks === 'object' && 'url' in jwks) return () => client.fetch(jwks.url, LIMITS.keySetBytes);
  if (typeof jwks === 'object') {
    const file = resolveConfigFile(folder, jwks.file);
    return () => readDocument(file);
  }
  const value = parseJson(jwks);
  return value === undefined
    ? () => Promise.reject(new Error('the configured key set is not valid JSON'))
    : () => Promise.resolve({ value, lifetime: Number.POSITIVE_INFINITY });
}

/** Reports problems that would otherwise only be noticed by the first client. `context` is that of the key set. */
export function reportKeySetProblems(jwks: Jwks, context: CompileContext): void {
  if (typeof jwks === 'string' && parseJson(jwks) === undefined)
    context.report({
      code: 'AGW0104',
      message: 'the key set is not valid JSON',
      help: 'set it to JSON text, or use `url:` or `file:`',
    });
  const missing =
    typeof jwks === 'object' && 'file' in jwks ? missingConfigFile(context.folder, jwks.file) : undefined;
  if (missing !== undefined)
    context.at('file').report({
      code: 'AGW0107',
      message: `${missing}; no token could be validated`,
      help: 'save the key set of the identity provider there, or set its URL as `jwks: { url: ... }`',
    });
}

/** The file of a key set, to be read again when it changes. */
export function watchedKeySet(
  jwks: Jwks | undefined,
  folder: string,
  changed: () => void,
): NonNullable<Policy['reloads']> {
  if (typeof jwks !== 'object' || !('file' in jwks)) return [];
  return [{ file: resolveConfigFile(folder, jwks.file), changed }];
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
