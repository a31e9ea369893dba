import { jsonIn, membersOf, stringIn, textIn } from '../../../core/foreign.ts';
import { watchRequest } from '../playground/call-trace.tsx';
import type { Endpoint } from '../playground/endpoints.ts';
import { readText, sendToGateway } from '../playground/send.ts';
import { authorization } from '../playground/token.tsx';
import type { KeptTrace } from '../trace/traces.ts';

/** The response of a route to a token. */
export interface Tried {
  readonly verdict: 'accepted' | 'rejected' | 'unclear';
  readonly status: number;
  /** The gateway's message; empty if the token was accepted. */
  readonly reason: string;
}

/** Statuses of requests that passed the policies and were then found to be invalid. */
const ACCEPTED = [400, 406];
const REFUSED = [401, 403];
const MOST = 10_000;

/**
 * Sends a request that every policy of the route evaluates, but that reaches no MCP server and no model: it does not
 * accept the content type of MCP responses, or names no model. Throws `ApiError` if the admin server does not respond.
 */
export async function tryToken(
  { port, path, host, backends }: Endpoint,
  token: string,
  traced: (trace: KeptTrace) => void,
  signal: AbortSignal,
): Promise<Tried> {
  const watch = await watchRequest(traced, () => undefined);
  const isMcp = backends.some(({ api }) => api === 'mcp');
  const answer = await sendToGateway(
    {
      port,
      path,
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        ...(host === undefined ? {} : { host }),
        ...authorization(token),
        ...watch.headers,
      },
      body: isMcp ? '' : '{}',
    },
    signal,
  );
  const text = await readText(answer.body, MOST);
  const { status } = answer;
  if (ACCEPTED.includes(status)) return { verdict: 'accepted', status, reason: '' };
  return { verdict: REFUSED.includes(status) ? 'rejected' : 'unclear', status, reason: reasonIn(text) };
}

function reasonIn(text: string): string {
  const value = jsonIn(text);
  if (value === undefined) return text.trim().slice(0, 500);
  const { error, error_description: description } = membersOf(value);
  return stringIn(description) ?? stringIn(error) ?? textIn(membersOf(error)['message']);
}
