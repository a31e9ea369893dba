import { membersOf, textIn } from '../../../core/foreign.ts';
import type { EventStream } from '../../../core/sse.ts';
import { edit, valueAt } from '../../kernel/json/json-text.ts';
import type { RequestObserver } from '../../kernel/observer.ts';
import { LINK } from '../../user-tokens/settings.ts';
import type { SignInLink } from '../../user-tokens/sign-in-required.ts';
import type { Connection } from '../connection/connection.ts';
import { signInOf } from '../connection/target-failure.ts';
import { LIST_METHODS, type ListMethod, outwardName, TOOL_LIST } from '../names/names.ts';
import { acceptsUrls, takesInput } from '../protocol/client-capabilities.ts';
import { parseMessage, type RpcMessage } from '../protocol/message.ts';
import { errorMessage, META, notificationMessage, RPC, resultMessage } from '../protocol/protocol.ts';
import type { ItemAccess, McpFields } from '../request-fields.ts';
import type { Session } from '../session/session.ts';
import { listResult, type Unavailable } from './list-result.ts';

// What a client gets of a target at which its user has to sign in. Only the client gets the link, and no log.

/** A call, as far as sign-ins are concerned. */
interface SignInCall {
  readonly session: Session;
  message: RpcMessage;
  readonly meta?: Readonly<Record<string, unknown>>;
  readonly stream: EventStream;
  readonly log: McpFields;
  readonly access: ItemAccess | undefined;
  readonly observer: RequestObserver | undefined;
}

/** A target at which the user of a session has to sign in. */
export interface TargetSignIn {
  readonly name: string;
  readonly link: SignInLink;
}

/** MCP 2025-11-25, "Elicitation", "URL Elicitation Required Error". */
const URL_ELICITATION_REQUIRED = -32042;
/** First revision with links in elicitations. Revisions are dates, so they compare as strings. */
const URLS_SINCE = '2025-11-25';
/** The key of the input that a client of revision 2026-07-28 is asked for. */
const INPUT = 'agctl/sign-in';

/**
 * The tool that stands for all tools of a target until its user has signed in: without it, no client would call the target, and no
 * user see the link.
 */
const SIGN_IN_TOOL = 'gateway_sign_in';

/** The name of the tool for clients. Each of several targets has one, also if other names have no prefix. */
const signInName = (session: Session, target: string): string =>
  session.isFederated ? outwardName('tool', target, SIGN_IN_TOOL) : SIGN_IN_TOOL;

/** The description of the tool, as JSON text. */
function signInTool({ session }: Pick<SignInCall, 'session'>, target: string): string {
  return JSON.stringify({
    name: signInName(session, target),
    title: `Sign in at ${target}`,
    description: `The user has not signed in at "${target}" yet, so its tools are not available. Call this tool if the user wants something that "${target}" may be able to do, and show the user the link that it returns. Afterwards, the tools of "${target}" take its place.`,
    inputSchema: { type: 'object', properties: {} },
  });
}

/** Whether there may be something for the caller after a sign-in at a target. */
const mayUse = ({ access }: Pick<SignInCall, 'access'>, target: string): boolean =>
  access?.mayUse(target) ?? true;

/** What a list of tools shows of targets at which the user has to sign in, if rules and bundle leave something of them. */
export function withSignIns(
  call: Pick<SignInCall, 'session' | 'access' | 'observer'>,
  signIns: readonly TargetSignIn[],
  unavailable: readonly Unavailable[],
): { readonly tools: readonly string[]; readonly unavailable: readonly Unavailable[] } {
  const shown = signIns.filter(({ name }) => mayUse(call, name));
  const reasons = shown.map(({ name, link }) => {
    hide(link, call.observer);
    return { name, error: `The user has to sign in. ${instruction(link)}` };
  });
  return {
    tools: shown.map(({ name }) => signInTool(call, name)),
    unavailable: [...unavailable, ...reasons],
  };
}

/** What a search for tools says of targets at which the user has to sign in, with the links. */
export function searchedSignIns(
  call: Pick<SignInCall, 'access' | 'observer'>,
  signIns: readonly TargetSignIn[],
): string[] {
  return signIns
    .filter(({ name }) => mayUse(call, name))
    .map(({ name, link }) => {
      hide(link, call.observer);
      return `Tools of "${name}" are missing, because the user has not signed in there. If they may be needed: ${instruction(link)}`;
    });
}

/** Traces do not show it. */
function hide({ url, code }: SignInLink, observer: RequestObserver | undefined): void {
  observer?.hide(new URL(url).searchParams.get(LINK) ?? undefined);
  observer?.hide(code);
}

/**
 * Answers a call of a target at which the user has to sign in. `why` it has failed, also for the log; undefined if the client has
 * called the tool that leads to the link.
 */
export function answerSignIn(call: SignInCall, target: string, link: SignInLink, why?: string): void {
  const { message, stream, log, session } = call;
  const { method, id = 'null' } = message;
  const list = LIST_METHODS[method];
  if (list !== undefined) {
    const { tools, unavailable } = withSignIns(call, [{ name: target, link }], []);
    stream.end(listResult(call, list.member, list.kind === 'tool' ? tools : [], unavailable));
    return;
  }
  hide(link, call.observer);
  const text =
    why === undefined
      ? `${instruction(link)}\nAfterwards, list the tools again: those of "${target}" are available then.`
      : `${why}: "${target}". ${instruction(link)}\nThen try again.`;
  if (why !== undefined) log.errorMessage = why;
  if (asksWithInput(call)) stream.end(resultMessage(id, inputRequired(target, link)));
  else if (asksWithError(call)) {
    log.errorCode = URL_ELICITATION_REQUIRED;
    const elicitation = {
      mode: 'url',
      elicitationId: link.id,
      url: link.url,
      message: question(target, link),
    };
    stream.end(errorMessage(id, URL_ELICITATION_REQUIRED, text, { elicitations: [elicitation] }));
    tellWhenDone(session, link);
  } else if (method === 'tools/call') {
    if (why !== undefined) log.isToolError = true;
    stream.end(resultMessage(id, textResult(call, text, why !== undefined)));
  } else {
    log.errorCode = RPC.internalError;
    stream.end(errorMessage(id, RPC.internalError, text, { url: link.url }));
  }
}

/** Links that clients of sessions have, of which each is told once that the user has signed in. */
const told = new WeakMap<Session, WeakSet<SignInLink>>();

function tellWhenDone(session: Session, link: SignInLink): void {
  const links = told.get(session) ?? new WeakSet();
  told.set(session, links);
  if (links.has(link)) return;
  links.add(link);
  const done = notificationMessage('notifications/elicitation/complete', { elicitationId: link.id });
  void link.done.then(() => session.sendOwn(done));
}

/** The connection whose sign-in a call of the tool is about; undefined for any other call. */
export function signInConnection(call: SignInCall): Connection | undefined {
  const { session, message } = call;
  if (message.method !== 'tools/call') return undefined;
  const name = textIn(message.params['name']);
  if (!name.endsWith(SIGN_IN_TOOL)) return undefined;
  return session.connections.find(
    ({ target }) =>
      target.credentials?.current?.signsIn === true &&
      signInName(session, target.name) === name &&
      mayUse(call, target.name),
  );
}

/**
 * Runs the tool: answers with the link, or that there is no need for it. Rejects if the target fails otherwise. A server that is
 * connected may have refused the token since, and lists have the tool as long as it does: so `list` asks for one.
 */
export async function runSignIn<
  T extends SignInCall & { readonly headers: Parameters<Connection['readySoon']>[0] },
>(
  call: T,
  connection: Connection,
  list: (connection: Connection, call: T, method: string, shape: ListMethod) => Promise<unknown>,
): Promise<void> {
  const { name } = connection.target;
  call.log.target = name;
  try {
    await connection.readySoon(call.headers);
    await list(connection, call, 'tools/list', TOOL_LIST);
  } catch (error) {
    const link = signInOf(error);
    if (link !== undefined) return answerSignIn(call, name, link);
    if (connection.rpc === undefined) throw error;
  }
  const text = `The user has signed in at "${name}". List the tools again: those of "${name}" are available. If one of them requires another sign-in, show the user the link that it returns.`;
  call.stream.end(resultMessage(call.message.id ?? 'null', textResult(call, text)));
}

/** The result of a tool, as JSON text. */
function textResult({ meta }: SignInCall, text: string, isError = false): string {
  const complete = meta === undefined ? {} : { resultType: 'complete' };
  return JSON.stringify({ ...complete, content: [{ type: 'text', text }], ...(isError && { isError }) });
}

/** Removes what the client says of the link from a call, which the server must not get. */
export function takeSignInAnswer(call: SignInCall): void {
  if (call.meta === undefined) return;
  const { text } = call.message;
  const responses = membersOf(call.message.params['inputResponses']);
  const span = valueAt(text, ['params', 'inputResponses']);
  if (span === undefined || !(INPUT in responses)) return;
  const { [INPUT]: _, ...others } = responses;
  answered.add(call);
  call.message = parseMessage(edit(text, [{ ...span, text: JSON.stringify(others) }]));
}

/** Calls whose users have answered already: they are told what to do, and not asked in a circle. */
const answered = new WeakSet<SignInCall>();

function asksWithInput(call: SignInCall): boolean {
  if (call.meta === undefined || answered.has(call) || !takesInput(call.message.method)) return false;
  return acceptsUrls(membersOf(call.meta[META.capabilities]));
}

const asksWithError = ({ meta, session }: SignInCall): boolean =>
  meta === undefined && session.version >= URLS_SINCE && session.acceptsUrls;

function inputRequired(target: string, link: SignInLink): string {
  const params = { mode: 'url', elicitationId: link.id, url: link.url, message: question(target, link) };
  return JSON.stringify({
    resultType: 'input_required',
    inputRequests: { [INPUT]: { method: 'elicitation/create', params } },
  });
}

const question = (target: string, { code }: SignInLink): string =>
  `Sign in at "${target}", so that the gateway can act in your name there.${code === undefined ? '' : ` Enter the code ${code} on the page.`}`;

/** Link and code are at the ends of lines: a full stop would be copied with them. */
const instruction = ({ url, code }: SignInLink): string =>
  `Show the user this link, to be opened in a browser: ${url}${code === undefined ? '' : `\nand this code, to be entered there: ${code}`}`;
