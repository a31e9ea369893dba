import type { HeaderList } from '../../kernel/request/header-list.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { LlmError } from '../errors.ts';
import type { LlmCall } from '../llm-call.ts';

/** Errors of AWS about a signature or the credentials behind it, which have the status 403 ("Common errors"). */
const AWS_REFUSALS =
  /^(?:UnrecognizedClient|InvalidSignature|ExpiredToken|IncompleteSignature|MissingAuthenticationToken|InvalidClientTokenId)/;

/** Whether a response says that the provider did not accept the credential of the request. */
export function refusesCredential(status: number, headers: HeaderList): boolean {
  return status === 401 || (status === 403 && AWS_REFUSALS.test(headers.get('x-amzn-errortype') ?? ''));
}

/**
 * The error (502) for a client whose call had the gateway's credential. With the provider's own status, the client's
 * program would tell its user that the user's key is wrong. OpenAI's and Anthropic's clients repeat a call with a 5xx,
 * unless `x-should-retry` says otherwise.
 */
export function credentialRefused(
  { endpoint }: RequestContext,
  { providerError }: LlmCall,
  status: number,
): Error {
  const name = providerError?.name === undefined ? '' : ` (${providerError.name})`;
  return new LlmError('upstream_invalid', 'provider_auth_failed', {
    message: "upstream call failed: the provider did not accept the gateway's credentials",
    detail: `${endpoint}: the provider answered ${status}${name}: check the key or the credentials of the model`,
    headers: ['x-should-retry', 'false'],
  });
}
