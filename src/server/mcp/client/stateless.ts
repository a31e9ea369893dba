import { membersOf, parseJson } from '../../../core/foreign.ts';
import { VERSION } from '../../../core/version.ts';
import { edit, valueAt } from '../../kernel/json/json-text.ts';
import { emptyReply } from '../../kernel/request/error-response.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { principal } from '../../kernel/request/shared-slots.ts';
import type { ClientHeaders } from '../connection/client-headers.ts';
import { initializing } from '../eras/open-target.ts';
import type { RpcMessage } from '../protocol/message.ts';
import { errorMessage, RPC, resultMessage, VERSION_HEADER } from '../protocol/protocol.ts';
import { mcpFields } from '../request-fields.ts';
import { Session, type SessionOptions } from '../session/session.ts';
import { ownerOf } from '../session/session-id.ts';
import type { SessionStore } from '../session/session-store.ts';
import { oneEvent, runCall } from './running-call.ts';

/** The revision of a request without a header for it (MCP 2025-06-18, "Protocol Version Header"). */
const ASSUMED_REVISION = '2025-03-26';

/** Requests whose effect lasts until the session ends. */
const NEEDS_SESSION = /^(?:logging\/|tasks\/|resources\/(?:un)?subscribe$)/;

/**
 * Answers one POST of a client without a session (`statefulMode: stateless`), except `initialize`. A request runs in a session
 * at the targets that the gateway initializes for it, on the targets that it needs, and ends afterwards.
 */
export async function answerStateless(
  ctx: RequestContext,
  sessions: SessionStore,
  message: RpcMessage,
  headers: ClientHeaders,
): Promise<Reply> {
  // There is nothing that a notification or a response could refer to.
  if (message.kind !== 'request') return emptyReply(202);
  const { method, id = 'null' } = message;
  if (method === 'ping') return oneEvent(resultMessage(id, '{}'));
  if (NEEDS_SESSION.test(method)) {
    const text = `${method} needs a session, and the gateway has none (statefulMode: stateless)`;
    mcpFields.set(ctx, { ...mcpFields.get(ctx), errorCode: RPC.methodNotFound, errorMessage: text });
    return oneEvent(errorMessage(id, RPC.methodNotFound, text));
  }
  const revision = ctx.headers.get(VERSION_HEADER) ?? ASSUMED_REVISION;
  const session = sessions.admit(
    (options) =>
      new RequestSession(
        options,
        ownerOf(principal.get(ctx)),
        revision,
        () => void sessions.abandon(session),
      ),
  );
  try {
    return await runCall(ctx, session, message, headers);
  } catch (error) {
    await sessions.abandon(session);
    throw error;
  }
}

/** The response to `initialize` without the capabilities that need a session. */
export function statelessInitialize(text: string): string {
  const span = valueAt(text, ['result', 'capabilities']);
  if (span === undefined) return text;
  const { logging, tasks, ...kept } = membersOf(parseJson(text.slice(span.start, span.end)));
  const lists = ['tools', 'prompts', 'resources'].filter((kind) => kind in kept);
  const capabilities = { ...kept, ...Object.fromEntries(lists.map((kind) => [kind, {}])) };
  return edit(text, [{ ...span, text: JSON.stringify(capabilities) }]);
}

/** The session of a single request. Requests of servers to its client are refused: it has no capabilities here. */
class RequestSession extends Session {
  readonly #onOver: () => void;

  constructor(options: SessionOptions, owner: string | undefined, revision: string, onOver: () => void) {
    const client = {
      protocolVersion: revision,
      capabilities: {},
      clientInfo: { name: 'agctl', version: VERSION },
    };
    const params = JSON.stringify(client);
    super(options, owner, initializing(params, options.log));
    this.initializeParams = params;
    this.#onOver = onOver;
  }

  override callEnded(): void {
    super.callEnded();
    this.#onOver();
  }
}
