import { isRecord, membersOf } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { LruMap } from '../../core/lru-map.ts';
import { META, SESSION_HEADER } from '../../server/mcp/protocol/protocol.ts';
import { bodyOf } from './body.ts';
import { isGivenUp } from './cut.ts';
import type { Cassette, Exchange } from './format.ts';
import { Ignored } from './ignored.ts';
import { type Playing, play } from './player.ts';
import { ReplaySession } from './replay-session.ts';
import { cancellation, cancelledBy, idText, isAnswer, isMcp, SessionTape } from './session-tape.ts';
import { type Asked, jsonOf, pathOf, rpcMethod, Tape } from './tape.ts';
import { explain, explainWaiting, refusal } from './unmatched.ts';

export interface ReplaySettings {
  /** Paths of members that are ignored where bodies are compared, beside ids of calls. */
  readonly ignore?: readonly string[];
  /** Whether the pauses of streams are left out. */
  readonly isFast?: boolean;
  /** Told why a request was not answered. */
  readonly onUnmatched?: (explanation: string) => void;
}

/** Answers requests with what was recorded. */
export class Replay {
  readonly #cassette: Cassette;
  readonly #tape: Tape;
  readonly #settings: ReplaySettings;
  /** Gateway and path of requests that are MCP messages. */
  readonly #mcpPaths: ReadonlySet<string>;
  /** Exchanges without an answer of which was told. */
  readonly #waiting = new Set<Exchange>();
  readonly #sessions = new LruMap<string, ReplaySession>(LIMITS.cassetteSessions);

  /** @throws TypeError for an ignored member whose path is invalid */
  constructor(cassette: Cassette, settings: ReplaySettings) {
    this.#cassette = cassette;
    this.#settings = settings;
    this.#tape = new Tape(cassette, Ignored.of(settings.ignore ?? []));
    this.#mcpPaths = new Set(
      cassette.exchanges.filter(isMcp).map(({ gateway, request }) => `${gateway} ${pathOf(request.target)}`),
    );
  }

  /** Answers a request that was sent to this gateway of the recording. */
  async handle(request: Request, gateway: string): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const body = await bodyOf({
      bytes: new Uint8Array(await request.arrayBuffer()),
      type: request.headers.get('content-type') ?? '',
      coding: request.headers.get('content-encoding') ?? '',
    });
    const asked: Asked = {
      gateway,
      method: request.method,
      target: pathname + search,
      ...(body !== undefined && { body }),
    };
    const id = request.headers.get(SESSION_HEADER);
    if (id === null || !this.#mcpPaths.has(`${gateway} ${pathname}`)) return this.#answer(asked, request);
    const session = this.#sessions.get(id);
    if (session === undefined) return refusal(404, 'session not found', asked, request.headers);
    return this.#inSession(session, asked, request);
  }

  async #inSession(session: ReplaySession, asked: Asked, request: Request): Promise<Response> {
    if (asked.method === 'DELETE') {
      this.#sessions.delete(session.id);
      return new Response(null, { status: 200 });
    }
    if (asked.method === 'GET') return this.#stream(session, request);
    const json = jsonOf(asked.body);
    if (isAnswer(json)) {
      session.received(idText(json));
      return new Response(null, { status: 202 });
    }
    const cancelled = session.calls.get(cancelledBy(json) ?? '');
    session.received(cancelled === undefined ? undefined : cancellation(cancelled));
    if (isNotification(asked)) return new Response(null, { status: 202 });
    return this.#answer(asked, request, session);
  }

  /** What the server has sent on its own, once. After that, and without a recorded stream, it sends nothing. */
  async #stream(session: ReplaySession, request: Request): Promise<Response> {
    const recorded = session.tape.streams[session.streams];
    session.streams += 1;
    return play(recorded ?? SILENT, this.#playing(request, undefined, session));
  }

  async #answer(asked: Asked, request: Request, session?: ReplaySession): Promise<Response> {
    const found = this.#tape.find(asked, session);
    if (!('request' in found)) {
      // Clients may check at any time whether the server is there.
      if (rpcMethod(asked.body) === 'ping')
        return Response.json({ jsonrpc: '2.0', id: membersOf(jsonOf(asked.body))['id'], result: {} });
      // Nothing depends on what is only told.
      if (isNotification(asked)) return new Response(null, { status: 202 });
      const explanation = explain(found, this.#cassette.file);
      this.#settings.onUnmatched?.(explanation);
      return refusal(found.isKnownPath ? 400 : 404, explanation, asked, request.headers);
    }
    const { response, line } = found;
    if (response.body !== undefined && 'omitted' in response.body) {
      const explanation = `${this.#cassette.file}:${line} has no body: ${response.body.omitted}`;
      this.#settings.onUnmatched?.(explanation);
      return refusal(501, explanation, asked, request.headers);
    }
    if (isGivenUp(found) && !this.#waiting.has(found)) {
      this.#waiting.add(found);
      this.#settings.onUnmatched?.(explainWaiting(asked, found, this.#cassette.file));
    }
    session?.calls.set(idText(jsonOf(asked.body)), idText(jsonOf(found.request.body)));
    const own = session ?? this.#begun(found, asked);
    const headers: Record<string, string> =
      own === undefined || session !== undefined ? {} : { [SESSION_HEADER]: own.id };
    return play(found, { ...this.#playing(request, { asked, found }, own), headers });
  }

  /** The session that an exchange has begun. */
  #begun(found: Exchange, asked: Asked): ReplaySession | undefined {
    if (found.session === undefined || rpcMethod(asked.body) !== 'initialize') return undefined;
    const { exchanges } = this.#cassette;
    const tape = new SessionTape(exchanges.filter(({ session }) => session === found.session));
    const session = new ReplaySession(found.session, tape);
    session.received();
    this.#sessions.set(session.id, session);
    return session;
  }

  #playing(
    request: Request,
    call: { readonly asked: Asked; readonly found: Exchange } | undefined,
    session: ReplaySession | undefined,
  ): Playing {
    const asked = membersOf(jsonOf(call?.asked.body));
    const recorded = membersOf(jsonOf(call?.found.request.body));
    return {
      isFast: this.#settings.isFast ?? false,
      signal: request.signal,
      session,
      rewritten: (json) => (asked['jsonrpc'] === '2.0' ? rewritten(json, recorded, asked) : json),
      unanswered: (id) => ({
        jsonrpc: '2.0',
        id: asked['id'],
        error: { code: -32_001, message: `the client has not answered the recorded request ${id}` },
      }),
    };
  }
}

const isNotification = ({ body }: Asked): boolean =>
  (rpcMethod(body) ?? '') !== '' && !('id' in membersOf(jsonOf(body)));

type Members = Readonly<Record<string, unknown>>;

/** A message for another call than the recorded one: its id and progress token. Undefined if the call asks for no progress. */
function rewritten(json: unknown, recorded: Members, asked: Members): unknown {
  if (!isRecord(json)) return json;
  const { method, params } = json;
  if (method === undefined)
    return JSON.stringify(json['id']) === JSON.stringify(recorded['id'])
      ? { ...json, id: asked['id'] }
      : json;
  const { progressToken, _meta: meta } = membersOf(params);
  if (method === 'notifications/progress' && progressToken === tokenOf(recorded)) {
    const token = tokenOf(asked);
    return token === undefined
      ? undefined
      : { ...json, params: { ...membersOf(params), progressToken: token } };
  }
  // Notifications of a subscription name the request that has opened it.
  const subscription = membersOf(meta)[META.subscription];
  if (subscription !== undefined && JSON.stringify(subscription) === JSON.stringify(recorded['id']))
    return {
      ...json,
      params: { ...membersOf(params), _meta: { ...membersOf(meta), [META.subscription]: asked['id'] } },
    };
  return json;
}

const tokenOf = (call: Members): unknown => membersOf(membersOf(call['params'])['_meta'])['progressToken'];

/** A stream on which nothing was recorded. */
const SILENT: Exchange = {
  at: 0,
  line: 0,
  gateway: '',
  request: { method: 'GET', target: '/', headers: {} },
  response: {
    ms: 0,
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    events: [],
    cut: 'client',
  },
};
