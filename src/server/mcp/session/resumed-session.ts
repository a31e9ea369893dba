import { AppError } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import { VERSION } from '../../../core/version.ts';
import { initializing } from '../eras/open-target.ts';
import { Session, type SessionOptions } from './session.ts';
import { nonceOf, type SessionState } from './session-id.ts';

/** The reason is logged but not sent to the client. */
export const notFound = (why: string): AppError => new AppError('mcp_session_not_found', { detail: why });

/** Ids of sessions that have ended, at most `LIMITS.endedSessions`: they still decrypt, but must not be resumed. */
export class EndedSessions {
  /** Nonces of the ids, the oldest first. */
  readonly #nonces = new Set<string>();

  get size(): number {
    return this.#nonces.size;
  }

  add(id: string): void {
    const [oldest] = this.#nonces;
    if (oldest !== undefined && this.#nonces.size >= LIMITS.endedSessions) this.#nonces.delete(oldest);
    this.#nonces.add(nonceOf(id));
  }

  has(id: string): boolean {
    return this.#nonces.has(nonceOf(id));
  }
}

/** Throws `mcp_session_not_found` (404) if a backend cannot continue a session with this state. */
export function checkResumable(state: SessionState, { targets, backend }: SessionOptions): void {
  if (state.b !== backend) throw notFound('it belongs to another backend');
  if (state.s === undefined || state.v === undefined)
    throw notFound('it has ended, or its process has: sessions with stdio targets cannot be resumed');
  const sameTargets =
    state.s.length === targets.length && targets.every(({ name }, index) => state.s?.[index]?.[0] === name);
  if (!sameTargets) throw notFound('its backend has other targets now');
}

/** Continues a session that another process created, at its sessions at the targets. `state` has passed `checkResumable`. */
export async function resumedSession(
  id: string,
  { p: owner, v: version = '', s: sessions = [], i: params }: SessionState,
  options: SessionOptions,
): Promise<Session> {
  const session = new Session(
    options,
    owner,
    initializing(params ?? JSON.stringify(initializeParamsOfUnknownClient(version)), options.log),
    params === undefined,
  );
  session.id = id;
  session.version = version;
  session.initializeParams = params ?? '';
  session.isResumable = true;
  await Promise.all(
    session.connections.map(async (connection, index) => {
      const upstreamSession = sessions[index]?.[1];
      if (typeof upstreamSession === 'string')
        await connection.resume(upstreamSession, version, params !== undefined);
    }),
  );
  return session;
}

/** The state of a session. `r`: the random part of its id. */
export function stateOf(session: Session, r: string): SessionState {
  return {
    r,
    b: session.options.backend,
    ...(session.owner === undefined ? {} : { p: session.owner }),
    v: session.version,
    s: session.connections.map(({ target, rpc }) => [target.name, rpc?.channel?.sessionId ?? null] as const),
    ...paramsOf(session, LIMITS.recordedInitializeLength),
  };
}

/** The part of the state that the session id contains, which is a header of every request. */
export function stateInId(session: Session, { r, b, p, v, s }: SessionState): SessionState {
  const own = { r, b, ...(p !== undefined && { p }) };
  if (!session.isResumable || v === undefined || s === undefined) return own;
  const isRecorded = session.record !== undefined;
  return { ...own, v, s, ...paramsOf(session, LIMITS.sealedInitializeLength), ...(isRecorded && { k: 1 }) };
}

const paramsOf = ({ initializeParams: i }: Session, max: number): { readonly i?: string } =>
  i !== '' && i.length <= max ? { i } : {};

/** `initialize` parameters for a resumed session whose id does not contain the client's. */
function initializeParamsOfUnknownClient(protocolVersion: string): object {
  return { protocolVersion, capabilities: {}, clientInfo: { name: 'agctl', version: VERSION } };
}

/** Closing the session does not end those at the targets; with `only`, not these. */
export function keepAtTargets({ connections }: Session, only?: SessionState['s']): void {
  for (const [index, { rpc }] of connections.entries())
    if (only === undefined || only[index]?.[1] === rpc?.channel?.sessionId) rpc?.channel?.keepSession?.();
}
