import type { Dispatcher } from 'undici';
import { LIMITS } from '../../../../core/limits.ts';
import type { Upstream } from '../../../transport/upstream/upstream.ts';
import type { UpstreamRequest } from '../../../transport/upstream/upstream-request.ts';
import type { CallerCredential, TargetCredentials } from '../../connection/caller-credential.ts';
import { TargetFailure } from '../../connection/target-failure.ts';
import { discard, header } from './http-body.ts';

/** What redirects are judged by. */
export interface RedirectingServer {
  readonly upstream: Upstream;
  /** URL of the target. */
  readonly url: URL;
  /** What its requests carry instead of credentials of the client. */
  readonly credentials?: TargetCredentials | undefined;
  /** Removes secrets from text of the server. */
  clean(text: string): string;
}

/** The server, whose text is also cleaned of the credential that it got. */
export const cleaning = (
  server: RedirectingServer,
  credential: CallerCredential | undefined,
): RedirectingServer =>
  credential === undefined ? server : { ...server, clean: (text) => server.clean(credential.clean(text)) };

/**
 * Sends a request and follows redirects that keep its method and body (307 and 308, RFC 9110 §15.4) within the origin, which has
 * its credentials already: Starlette redirects `/mcp` to `/mcp/` (python-sdk#1168). Rejects with a `TargetFailure` that says what to
 * configure for every other redirect.
 */
export async function requestFollowing(
  server: RedirectingServer,
  request: UpstreamRequest,
  credential?: CallerCredential,
): Promise<Dispatcher.ResponseData> {
  const { upstream } = server;
  let { path } = request;
  let refusals = 0;
  for (let followed = 0; ; followed += 1) {
    const next = path === request.path ? request : { ...request, path };
    // Completed for each request, as a signature covers the path.
    const response = await upstream.request(
      credential === undefined ? next : await credential.complete(next, upstream),
    );
    const { statusCode: status } = response;
    if ((status === 401 || status === 403) && credential?.refused !== undefined) {
      const challenge = response.headers['www-authenticate'];
      const isAgain = await credential
        .refused({ status, challenge, isSecond: refusals > 0 }, upstream)
        .catch((error: unknown) => {
          discard(response);
          throw error;
        });
      refusals += 1;
      if (isAgain) {
        discard(response);
        continue;
      }
    }
    if (!REDIRECTS.has(response.statusCode)) {
      rejectEncoded(server, response);
      return response;
    }
    await response.body.dump();
    path = nextPath(cleaning(server, credential), path, response, followed);
  }
}

/**
 * The gateway asks for no content coding, and decompresses none: a few bytes could become hundreds of megabytes. The body of an
 * error status is not needed.
 */
function rejectEncoded({ upstream }: RedirectingServer, response: Dispatcher.ResponseData): void {
  const coding = response.headers['content-encoding'];
  if (coding === undefined || /^(?:identity)?$/i.test(String(coding).trim())) return;
  if (response.statusCode > 299) return;
  discard(response);
  const problem = `the server answered with the content-encoding \`${String(coding).slice(0, 100)}\`, which the gateway did not ask for: turn compression off for its MCP endpoint`;
  throw new TargetFailure(problem, `${upstream.address}: ${problem}`);
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

function nextPath(
  { upstream, url, clean }: RedirectingServer,
  path: string,
  response: Dispatcher.ResponseData,
  followed: number,
): string {
  const { statusCode } = response;
  const location = header(response, 'location') ?? 'none:';
  // Not as a reference: `//` would begin a host.
  const from = url.origin + path;
  const parsed = URL.canParse(location, from) ? new URL(location, from) : undefined;
  const to = parsed !== undefined && /^https?:$/.test(parsed.protocol) ? parsed : undefined;
  const isKept = statusCode === 307 || statusCode === 308;
  if (to?.origin === url.origin && isKept && followed < LIMITS.targetRedirects)
    return to.pathname + to.search;
  // Neither query nor credentials.
  const shown = to === undefined ? '' : clean(to.origin + to.pathname).slice(0, 200);
  const advice = `. If that is its MCP endpoint, set \`host\` to it`;
  const problem =
    to === undefined
      ? `the server redirects without a URL in \`Location\` (HTTP ${statusCode}): set \`host\` to the URL of its MCP endpoint`
      : to.origin !== url.origin
        ? `the server redirects to another origin, ${shown} (HTTP ${statusCode}), where the gateway sends no credentials${advice}`
        : isKept
          ? `the server redirects more than ${LIMITS.targetRedirects} times, at last to ${shown} (HTTP ${statusCode})${advice}`
          : `the server redirects to ${shown} with HTTP ${statusCode}, which does not keep the method of a request${advice}`;
  throw new TargetFailure(problem, `${upstream.address}: ${problem}`);
}
