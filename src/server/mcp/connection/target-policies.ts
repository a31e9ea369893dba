import { z } from 'zod';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { backendAuthSchema, readCredential } from '../../transport/services/backend-credential.ts';
import { backendTlsSchema, compileBackendTls, type TlsOptions } from '../../transport/tls/backend-tls.ts';

/** `targets[].policies`: how the gateway connects to a server. */
export const targetPoliciesSchema = z
  .strictObject({
    backendTLS: backendTlsSchema.optional(),
    backendAuth: backendAuthSchema
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
