import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { CredentialOrigin } from '../../../kernel/request/shared-slots.ts';
import { explainUpstreamError, locatedProblem } from '../../../transport/upstream/upstream-error.ts';
import type { CallerCredential } from '../../connection/caller-credential.ts';
import { GatewayRefused, TargetFailure, UpstreamStatusError } from '../../connection/target-failure.ts';
import { BODY_IN_ERROR, OversizedMessage } from './http-body.ts';
import type { RedirectingServer } from './redirects.ts';
import { UpstreamSessionLost } from './session-loss.ts';

/** The failure of an answer without a response; `said` is the text that it had instead, such as `{"error": "…"}`. */
export const noResponse = (server: RedirectingServer, said = ''): TargetFailure =>
  withWords(server, 'the server ended its answer without a response', quoted(server, said, '; it said: '));

export function callFailed(address: string, error: unknown): TargetFailure {
  return new TargetFailure(
    `the call to the server failed: ${explainUpstreamError(error)}`,
    locatedProblem(address, error),
  );
}

/** The failure of a server that accepts no POST at this URL: usually it offers the older HTTP+SSE transport only. */
export function postRefused(address: string): TargetFailure {
  const problem =
    'the server answered HTTP 405 to a POST, so it does not offer Streamable HTTP at this URL. ' +
    'Set `host` to its Streamable HTTP endpoint, often `/mcp`. If it only has the older HTTP+SSE transport, write ' +
    '`sse: { host: … }` instead of `mcp`';
  const failure = new TargetFailure(problem, `${address}: ${problem}`);
  failure.isRefusedMethod = true;
  return failure;
}

/** The failure of an answer that is neither JSON nor an event stream, such as a sign-in page, or empty. */
export function unusableAnswer(
  server: RedirectingServer,
  status: number,
  type: string,
  text: string,
): TargetFailure {
  if (text === '') return withWords(server, `the server answered HTTP ${status} without a response`, '');
  const kind = type === '' ? 'without a Content-Type' : `with ${type}`;
  const problem = `the server answered ${kind} instead of JSON or an event stream`;
  return withWords(server, problem, quoted(server, text, ': '));
}

/** A failure that ends with words of the server, and is also known without them. */
function withWords({ upstream }: RedirectingServer, problem: string, words: string): TargetFailure {
  const failureOf = (said: string): TargetFailure =>
    new TargetFailure(`${problem}${said}`, `${upstream.address}: ${problem}${said}`);
  const failure = failureOf(words);
  if (words !== '') failure.unquoted = failureOf('');
  return failure;
}

/** The first 200 characters of a text of the server on one line, after `joint`; empty if there are none. */
export function quoted({ clean }: Pick<RedirectingServer, 'clean'>, text: string, joint: string): string {
  // Secrets are removed before it is cut: a part would not be found.
  const line = clean(text.slice(0, BODY_IN_ERROR).replaceAll(/\s+/g, ' ').trim());
  return line === '' ? '' : joint + line.slice(0, 200);
}

/** Whether the error already says what failed, so that it is not an error of the connection. */
export function isClassified(error: unknown): error is Error {
  return (
    error instanceof UpstreamStatusError ||
    error instanceof UpstreamSessionLost ||
    error instanceof OversizedMessage ||
    error instanceof TargetFailure
  );
}

/**
 * What the caller is told of a server's refusal. If the server refused a credential of the gateway, the caller gets no 401: it would
 * look for the mistake in its own credential.
 */
export function refusalOf(
  refusal: UpstreamStatusError,
  server: RedirectingServer,
  origin: CredentialOrigin | undefined,
): UpstreamStatusError | TargetFailure {
  const { status, body } = refusal;
  if (origin !== 'gateway' || (status !== 401 && status !== 403)) return refusal;
  const problem =
    status === 401
      ? 'the server refused the credential that the gateway sent (HTTP 401): check `backendAuth`'
      : 'the server does not allow this with the credential that the gateway sent (HTTP 403)';
  const detail = `${server.upstream.address}: ${problem}${quoted(server, body, '; it said: ')}`;
  return new GatewayRefused(problem, detail);
}

/** The failure of an error status. The server may repeat the credential that it got, which the client has not. */
export function statusError(
  { statusCode, headers }: Dispatcher.ResponseData,
  body: string,
  credential: CallerCredential | undefined,
): UpstreamStatusError {
  if (credential === undefined)
    return new UpstreamStatusError(statusCode, headers as IncomingHttpHeaders, body);
  const clean = Object.entries(headers).map(
    ([name, value]) => [name, typeof value === 'string' ? credential.clean(value) : value] as const,
  );
  return new UpstreamStatusError(statusCode, Object.fromEntries(clean), credential.clean(body));
}
