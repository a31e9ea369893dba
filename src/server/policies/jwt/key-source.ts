import { z } from 'zod';
import { messageOf } from '../../../core/errors.ts';
import { jsonIn, membersOf } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { missingConfigFile, resolveConfigFile } from '../../kernel/files/config-file.ts';
import { readJsonFile } from '../../kernel/files/json-file.ts';
import type { ReloadedFile } from '../../kernel/files/reloaded-file.ts';
import { type DocumentClient, readDocument } from '../../transport/upstream/document-client.ts';
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
  const value = jsonIn(jwks);
  return value === undefined
    ? () => Promise.reject(new Error('the configured key set is not valid JSON'))
    : () => Promise.resolve({ value, lifetime: Number.POSITIVE_INFINITY });
}

/** A kind of document: what it is called, the member that it needs, and what does not work without it. */
interface DocumentKind {
  readonly name: string;
  readonly member: string;
  has(value: unknown): boolean;
  readonly effect: string;
  readonly help: string;
}

/** A JWK Set (RFC 7517 §5). */
const KEY_SET: DocumentKind = {
  name: 'key set',
  member: '`keys` list',
  has: (value) => Array.isArray(membersOf(value)['keys']),
  effect: 'no token could be validated',
  help: 'save the key set of the identity provider there, or set its URL as `jwks: { url: ... }`',
};

/** OpenID Connect Discovery §3. */
const METADATA: DocumentKind = {
  name: 'metadata',
  member: '`issuer`',
  has: (value) => typeof membersOf(value)['issuer'] === 'string',
  effect: 'nobody could sign in',
  help: 'save the metadata of the identity provider there, or set its URL as `discovery: { url: ... }`',
};

/** Reports problems that would otherwise only be noticed by the first client. `context` is that of the key set. */
export const reportKeySetProblems = (jwks: Jwks, context: CompileContext): void =>
  reportProblems(jwks, KEY_SET, context);

/** As `reportKeySetProblems`, for the metadata of a provider. */
export const reportMetadataProblems = (discovery: Jwks, context: CompileContext): void =>
  reportProblems(discovery, METADATA, context);

function reportProblems(source: Jwks, kind: DocumentKind, context: CompileContext): void {
  if (typeof source === 'string') {
    const value = jsonIn(source);
    if (value === undefined || !kind.has(value))
      context.report({
        code: 'AGW0104',
        message: `the ${kind.name} ${value === undefined ? 'is not valid JSON' : `has no ${kind.member}`}`,
        help: 'set it to JSON text, or use `url:` or `file:`',
      });
  } else if ('file' in source) reportFile(source.file, kind, context.at('file'));
}

function reportFile(file: string, kind: DocumentKind, context: CompileContext): void {
  const missing = missingConfigFile(context.folder, file);
  const problem = missing ?? fileProblem(resolveConfigFile(context.folder, file), kind);
  if (problem === undefined) return;
  context.report({
    code: missing === undefined ? 'AGW0104' : 'AGW0107',
    message: `${problem}; ${kind.effect}`,
    help: kind.help,
  });
}

/** What is wrong with a file, without its text. */
function fileProblem(path: string, { member, has }: DocumentKind): string | undefined {
  try {
    return has(readJsonFile(path, LIMITS.keySetBytes)) ? undefined : `${path} has no ${member}`;
  } catch (error) {
    return messageOf(error);
  }
}

/** The file of a key set or of metadata, to be read again when it changes. */
export function watchedDocument(
  jwks: Jwks | undefined,
  folder: string,
  changed: ReloadedFile['changed'],
): readonly ReloadedFile[] {
  if (typeof jwks !== 'object' || !('file' in jwks)) return [];
  return [{ file: resolveConfigFile(folder, jwks.file), changed }];
}
