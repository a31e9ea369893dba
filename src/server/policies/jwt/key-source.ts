import { z } from 'zod';
import { missingConfigFile, resolveConfigFile } from '../../../core/config-file.ts';
import { messageOf } from '../../../core/errors.ts';
import { membersOf } from '../../../core/foreign.ts';
import { readJsonFile } from '../../../core/json-file.ts';
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
  if (typeof jwks === 'string') {
    const value = parseJson(jwks);
    if (value === undefined || !isKeySet(value))
      context.report({
        code: 'AGW0104',
        message: value === undefined ? 'the key set is not valid JSON' : 'the key set has no `keys` list',
        help: 'set it to JSON text, or use `url:` or `file:`',
      });
  } else if ('file' in jwks) reportKeyFile(jwks.file, context.at('file'));
}

function reportKeyFile(file: string, context: CompileContext): void {
  const missing = missingConfigFile(context.folder, file);
  const problem = missing ?? keyFileProblem(resolveConfigFile(context.folder, file));
  if (problem === undefined) return;
  context.report({
    code: missing === undefined ? 'AGW0104' : 'AGW0107',
    message: `${problem}; no token could be validated`,
    help: 'save the key set of the identity provider there, or set its URL as `jwks: { url: ... }`',
  });
}

/** What is wrong with a file, without its text. */
function keyFileProblem(path: string): string | undefined {
  try {
    return isKeySet(readJsonFile(path, LIMITS.keySetBytes)) ? undefined : `${path} has no \`keys\` list`;
  } catch (error) {
    return messageOf(error);
  }
}

/** Whether a value is a JWK Set (RFC 7517 §5). */
const isKeySet = (value: unknown): boolean => Array.isArray(membersOf(value)['keys']);

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
