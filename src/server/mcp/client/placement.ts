import { createHash } from 'node:crypto';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { MODERN_REVISION, SESSION_HEADER, VERSION_HEADER } from '../protocol/protocol.ts';
import { workerOf } from '../session/session-id.ts';

/** Query parameter with the session id of the transport HTTP+SSE, as in the official SDKs. */
export const SESSION_PARAMETER = 'sessionId';

/** What decides which worker of a gateway answers a request to an MCP backend. */
export interface Placed {
  /** Name of the backend. */
  readonly backend: string;
  /** Whether a target is a child process. */
  readonly hasProcesses: boolean;
  /** Whether all sessions share one process of a target. */
  readonly sharesProcess: boolean;
}

/**
 * The worker, from 1 to `workers`, that answers a request; undefined if any can.
 *
 * - The worker that created a session has its connections and child processes.
 * - A process that sessions share runs once, so all its requests come to one worker.
 * - A request of revision 2026-07-28 has no session: requests of one caller come to one worker, which may have a session
 *   for them at a target with sessions, or a call that waits for input.
 */
export function workerFor(
  { headers, query, client }: RequestContext,
  workers: number,
  { backend, hasProcesses, sharesProcess }: Placed,
): number | undefined {
  const id = headers.get(SESSION_HEADER) ?? sessionParameter(query);
  if (id !== undefined) {
    const worker = workerOf(id);
    // An id of another gateway with the same key: each of our workers could continue the session, but only one may.
    return worker !== undefined && worker <= workers ? worker : oneOf(workers, id);
  }
  const isModern = headers.get(VERSION_HEADER) === MODERN_REVISION;
  if (sharesProcess || (isModern && hasProcesses)) return oneOf(workers, backend);
  return isModern ? oneOf(workers, headers.get('authorization') ?? client.address) : undefined;
}

const sessionParameter = (query: string): string | undefined =>
  query.includes(SESSION_PARAMETER)
    ? (new URLSearchParams(query).get(SESSION_PARAMETER) ?? undefined)
    : undefined;

/** The same worker for the same text, in all processes. */
const oneOf = (workers: number, text: string): number =>
  1 + (createHash('sha256').update(text).digest().readUInt32BE() % workers);
