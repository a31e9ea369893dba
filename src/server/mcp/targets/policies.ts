import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import { messageOf } from '../../../core/errors.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { isHeaderValue } from '../../kernel/header-list.ts';
import { backendTlsSchema, compileBackendTls, type TlsOptions } from '../../transport/backend-tls.ts';

const credential = z.union([
  z.string().min(1),
  z.strictObject({
    file: z.string().min(1).describe('File with the token, read when the configuration is loaded.'),
  }),
]);

/** `targets[].policies`: how the gateway connects to a server. */
export const targetPoliciesSchema = z
  .strictObject({
    backendTLS: backendTlsSchema.optional(),
    backendAuth: z
      .strictObject({
        key: credential
          .meta({ secret: true })
          .describe('Bearer token, or `{ file: … }` with a file that contains it.'),
      })
      .optional()
      .describe("Credential for the server, instead of the client's `Authorization` header."),
  })
  .describe('How the gateway connects to the server. For targets that are reached over HTTP.');

/** Compiled policies of one target. */
export interface TargetPolicies {
  readonly tls?: TlsOptions;
  /** `Authorization` header of every request to the server. */
  readonly authorization?: string;
}

/** Compiles the policies of a target, and reads the files that they name. */
export function compileTargetPolicies(
  { backendTLS, backendAuth }: z.output<typeof targetPoliciesSchema>,
  context: CompileContext,
): TargetPolicies {
  const key = backendAuth && readCredential(backendAuth.key, context.at('backendAuth', 'key'));
  return {
    ...(backendTLS !== undefined && { tls: compileBackendTls(backendTLS, context.at('backendTLS')) }),
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
  };
}

function readCredential(key: z.output<typeof credential>, context: CompileContext): string | undefined {
  let text: string;
  try {
    text = typeof key === 'string' ? key : readFileSync(resolve(context.folder, key.file), 'utf8').trim();
  } catch (error) {
    context.at('file').report({
      code: 'AGW0107',
      message: `cannot read the file: ${messageOf(error)}`,
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
