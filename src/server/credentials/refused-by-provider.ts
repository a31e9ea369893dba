import { messageOf } from '../../core/errors.ts';
import { membersOf } from '../../core/foreign.ts';

/** Characters of an error code (RFC 6749 §5.2), as providers use them. */
const CODE = /^[\w.:/-]{1,64}$/;

/** Where to look, by error code. */
const FIXES: Readonly<Record<string, string>> = {
  invalid_client:
    'it does not know the client id, or has another client secret or method of authentication for it',
  unauthorized_client: 'its settings of the client do not allow this grant',
  invalid_grant: 'a code or token has expired, was used before, or belongs to another client or redirect URI',
  invalid_scope: 'its settings of the client do not allow the scopes',
  access_denied: 'the user, or a rule of the provider, has declined',
};

/**
 * Why a request to an identity provider failed, for the log: its error code and where to look, without its words, which may repeat
 * secrets. `fix` says for `invalid_client` and the like what to correct in the configuration.
 *
 * @param error of oauth4webapi
 */
export function refusedByProvider(error: unknown, fix: string): string {
  const { error: code, status, cause } = membersOf(error);
  if (typeof code === 'string' && CODE.test(code)) {
    const why = Object.hasOwn(FIXES, code) ? `: ${FIXES[code]}` : '';
    return `the provider answered \`${code}\`${why}; ${fix}`;
  }
  // Not an answer of RFC 6749.
  const answered = typeof status === 'number' ? status : cause instanceof Response ? cause.status : undefined;
  if (answered !== undefined && answered >= 400)
    return `the provider answered ${answered} without an error code; ${fix}`;
  return messageOf(error);
}
