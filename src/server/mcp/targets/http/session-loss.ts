import type { Dispatcher } from 'undici';
import { LIMITS } from '../../../../core/limits.ts';
import type { Log } from '../../../../core/log.ts';
import { locatedProblem } from '../../../transport/upstream/upstream-error.ts';
import type { CallerCredential } from '../../connection/caller-credential.ts';
import { requestMessage, rpcErrorIn, SESSION_HEADER, VERSION_HEADER } from '../../protocol/protocol.ts';
import { isEventStream, readEvents, readText } from './http-body.ts';
import { type RedirectingServer, requestFollowing } from './redirects.ts';

/** The server no longer knows the session. A new `initialize` gets a new one. */
export class UpstreamSessionLost extends Error {
  /** `answer`: what the server said. */
  constructor(answer = '') {
    super(`the server no longer knows the session${answer === '' ? '' : `: ${answer}`}`);
  }
}

/** Characters of an answer that may be about the session; longer ones are something else. */
const LONGEST_REFUSAL = 4_096;

/**
 * Whether an error may say that the session is unknown, by its text: servers answer 404 for such a session (MCP 2025-11-25, "Session
 * Management"), but also 400, 401, 422 or 503 with text or JSON, or 200 with a JSON-RPC error. `No valid session ID provided`
 * (python-sdk#1727), `Invalid session ID` (mcp-go#689), `Unauthorized: Session not found` (rust-sdk#559), `Server not initialized`.
 * A tool may use the same words.
 */
export function mayBeAboutSession(body: string): boolean {
  return body.length <= LONGEST_REFUSAL && /session|initiali[sz]/i.test(rpcErrorIn(body)?.message ?? body);
}

/** Whether a message is an error response that may be about the session. Called for every message: parses hardly any. */
export function isErrorAboutSession(text: string): boolean {
  if (text.length > LONGEST_REFUSAL || !text.includes('"error"')) return false;
  const error = rpcErrorIn(text);
  return error !== undefined && mayBeAboutSession(error.message);
}

/**
 * Asks a server whether it knows the session: it answers every request alike if it does not. So a call that was refused with words
 * that a tool may also use is not sent twice if it did run.
 */
export const PROBE = requestMessage('"agctl-session"', 'ping');

/** Whether the response to `PROBE` says that the server does not know the session. */
export async function deniesSession(response: Dispatcher.ResponseData): Promise<boolean> {
  const { statusCode } = response;
  if (statusCode === 404) {
    await response.body.dump();
    return true;
  }
  if (statusCode < 200 || statusCode > 299)
    return mayBeAboutSession(await readText(response, LONGEST_REFUSAL));
  if (!isEventStream(response)) return isErrorAboutSession(await readText(response, LONGEST_REFUSAL));
  let isDenied = false;
  await readEvents(response, {}, (text) => {
    isDenied = isErrorAboutSession(text);
    return isDenied || text.includes('"agctl-session"');
  });
  return isDenied;
}

/**
 * Ends the session at the server (DELETE), waiting at most `LIMITS.childKillGrace`. Never rejects: servers may refuse with
 * 405 (MCP, "Session Management"), and any other failure is only logged.
 */
export async function endSession(
  target: RedirectingServer & { readonly name: string; readonly log: Log },
  sessionId: string,
  version: string | undefined,
  credential: CallerCredential | undefined,
): Promise<void> {
  const { name, upstream, url, log } = target;
  try {
    const request = {
      method: 'DELETE',
      path: url.pathname + url.search,
      headers: [SESSION_HEADER, sessionId, ...(version === undefined ? [] : [VERSION_HEADER, version])],
      signal: AbortSignal.timeout(LIMITS.childKillGrace),
    };
    const response = await requestFollowing(target, request, credential);
    await response.body.dump();
  } catch (error) {
    log.debug('mcp::http', 'the session could not be ended at the target', {
      target: name,
      problem: locatedProblem(upstream.address, error),
    });
  }
}
