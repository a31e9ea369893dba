import { elementsOf, membersOf, stringIn } from '../../../core/foreign.ts';
import { edit, valueAt } from '../../kernel/json/json-text.ts';
import type { Connection } from '../connection/connection.ts';
import { ReplayedRequests } from '../connection/replayed-requests.ts';
import { toolsListed } from '../connection/seen-tools.ts';
import { warnAboutToolNames } from '../connection/target-warnings.ts';
import {
  type ItemKind,
  inwardMessage,
  itemOf,
  LIST_METHODS,
  type ListMethod,
  type NamedItem,
  nameAt,
  namedItem,
  outwardResult,
  outwardUris,
  unknownItem,
} from '../names/names.ts';
import { UNANNOUNCED } from '../protocol/initialize-result.ts';
import { parseMessage, type RpcMessage } from '../protocol/message.ts';
import { MODERN_REQUESTS, RPC, RpcError, resultMessage, SESSION_REQUESTS } from '../protocol/protocol.ts';
import { isReadableTool } from '../protocol/readable-tool.ts';
import type { McpFields, MessageGuards } from '../request-fields.ts';
import type { ClientCall, Rewrite } from './call.ts';
import { answerFailure, endList, fail, forward, recordArguments } from './call.ts';
import { ownerOf, ownName } from './item-owner.ts';
import { listResult, refuseCursor } from './list-result.ts';
import { isUnlisted } from './listed-names.ts';
import { filterList, inBundle, type Listing, listAll, listTarget, listTasks, renamedItem } from './lists.ts';
import { withClientCursor, withOwnCursor } from './page-cursor.ts';
import { checkPin, needsPin } from './pinned-call.ts';
import { listingReadTool, readResult, withReadTool } from './read-result.ts';
import { runOnEach } from './run-on-each.ts';
import { runSignIn, signInConnection, takeSignInAnswer, withSignIns } from './sign-in.ts';
import { runWithSearch } from './tool-search.ts';
import { checkUnlisted } from './unlisted-call.ts';

/** Runs one request of a client on the targets of its session. The stream always gets a response. */
export function dispatch(call: ClientCall): void {
  const { toolSearch } = call.session.options;
  try {
    const running = toolSearch === undefined ? run(call) : runWithSearch(call, toolSearch, run);
    running?.catch((error: unknown) => answerFailure(call, error));
  } catch (error) {
    answerFailure(call, error);
  }
}

/** Returns undefined if the request was answered or sent at once. */
function run(call: ClientCall): Promise<void> | undefined {
  takeSignInAnswer(call);
  const { message, session } = call;
  recordItem(call);
  rejectUnknownMethod(call);
  const signIn = signInConnection(call);
  if (signIn !== undefined)
    return runSignIn(call, signIn, listTarget).catch((error: unknown) => fail(call, signIn, error));
  const item = namedItem(message.method, message.params);
  const { keptResults } = session;
  if (keptResults !== undefined && item !== undefined && readResult(call, item, keptResults))
    return undefined;
  const list = LIST_METHODS[message.method];
  const [only] = session.connections;
  if (!session.isFederated && only !== undefined && (keptResults === undefined || hasList(only, list)))
    return runOnSingle(call, only, item);
  if (message.method === 'tasks/list') return listTasks(call);
  if (list !== undefined) return runList(call, list);
  if (item !== undefined) return runOnOwner(call, item);
  if (message.method === 'logging/setLevel') return runOnEach(call, 'logging');
  if (message.method !== 'ping')
    throw new RpcError(RPC.methodNotFound, `method not found: ${message.method}`);
  call.stream.end(resultMessage(message.id ?? 'null', '{}'));
  return undefined;
}

/**
 * With authorization rules, rejects methods that are not part of the protocol, because rules cannot decide on them. Always
 * rejects a request whose method is that of a notification: a lenient server would treat it as one, and for example cancel a
 * call by the gateway's id.
 */
function rejectUnknownMethod({ access, message: { method }, meta }: ClientCall): void {
  const requests = meta === undefined ? SESSION_REQUESTS : MODERN_REQUESTS;
  if (access === undefined ? !method.startsWith('notifications/') : requests.has(method)) return;
  throw new RpcError(RPC.methodNotFound, `method not found: ${method}`);
}

/** Records kind and name of the item for the access log. */
function recordItem({ message: { method, params }, log }: ClientCall): void {
  const item = itemOf(method, params);
  const kind = item?.kind ?? LIST_METHODS[method]?.kind;
  if (kind !== undefined) log.resourceType = kind === 'template' ? 'templates' : kind;
  const name = item && nameAt(params, item.namePath);
  if (kind !== undefined && name !== undefined) recordName(log, kind, name);
}

/** Whether a target has a list of resources, if that is asked for: the gateway announces them also if only it has some. */
function hasList({ capabilities }: Connection, list: ListMethod | undefined): boolean {
  if (list?.kind !== 'resource' && list?.kind !== 'template') return true;
  const announced = capabilities?.['resources'];
  return capabilities === undefined || (announced !== undefined && announced !== UNANNOUNCED);
}

/** Runs a request on a single target without prefix. Unknown methods are forwarded too. */
function runOnSingle(
  call: ClientCall,
  connection: Connection,
  item: NamedItem | undefined,
): Promise<void> | undefined {
  const { message } = call;
  if (item !== undefined) {
    const own = ownName(item, connection.target);
    checkAccess(call, item, connection.target.name, own);
    if (
      own !== item.name ||
      call.guards !== undefined ||
      needsPin(connection, item) ||
      isUnlisted(call, connection, item, own)
    )
      return runChecked(call, connection, item, own);
  }
  const list = LIST_METHODS[message.method];
  if (list !== undefined) return forwardList(call, connection, withOwnCursor(message), list);
  return forward(call, connection, message, recordingReplayed(connection, message));
}

/** Forwards a request for a page of a list. */
function forwardList(
  call: ClientCall,
  connection: Connection,
  message: RpcMessage,
  list: ListMethod,
): Promise<void> | undefined {
  const rewrite = listRewrite(call, connection, list);
  return forward(call, connection, message, (text, response) => {
    const page = withClientCursor(text, message, response.result);
    return rewrite === undefined ? page : rewrite(page, response);
  });
}

/** Runs a request for an item that is renamed, pinned or checked by guardrails. */
async function runChecked(
  call: ClientCall,
  connection: Connection,
  item: NamedItem,
  own: string,
): Promise<void> {
  let { message } = call;
  if (!(await isCallable(call, connection, item, own))) return;
  if (own !== item.name) {
    recordName(call.log, item.kind, own);
    message = withName(message, item, own);
  }
  if (call.guards !== undefined) message = await guarded(call, call.guards, connection, message);
  await forward(call, connection, message, recordingReplayed(connection, message));
}

/** Whether a tool may be called by what its target lists. If not, that was answered. Throws `RpcError`. */
async function isCallable(
  call: ClientCall,
  connection: Connection,
  item: NamedItem,
  own: string,
): Promise<boolean> {
  if (needsPin(connection, item)) return checkPin(call, connection, item, own);
  return !isUnlisted(call, connection, item, own) || checkUnlisted(call, connection, item, own);
}

/** Removes from a list what the caller does not see; undefined if the response is passed on unchanged. */
function listRewrite(call: ClientCall, connection: Connection, list: ListMethod): Rewrite | undefined {
  const { access } = call;
  const { target } = connection;
  const isTool = list.kind === 'tool';
  const isFiltered = access !== undefined || (isTool && (target.tools ?? target.pins) !== undefined);
  const allows = (own: string): boolean => access?.allows(list.kind, target.name, own) ?? true;
  const filter: Rewrite = (text, { result }) =>
    isFiltered || !areReadable(result, call) ? filterList(text, list, call, connection, allows) : text;
  if (!isTool) return isFiltered ? filter : undefined;
  const checked = checkingToolNames(call, connection, filter);
  if (call.session.keptResults === undefined) return checked;
  return (text, response) => listingReadTool(call, checked(text, response));
}

/** Whether clients can read all tools of a list. */
const areReadable = (result: unknown, { meta }: ClientCall): boolean =>
  elementsOf(membersOf(result)['tools']).every((tool) => isReadableTool(tool, meta !== undefined));

function checkingToolNames(
  { session, message }: ClientCall,
  { target }: Connection,
  filter: Rewrite,
): Rewrite {
  return (text, response) => {
    const { tools } = membersOf(response.result);
    if (Array.isArray(tools)) {
      const names = tools.flatMap((tool) => {
        const { name } = membersOf(tool);
        return typeof name === 'string' && target.tools !== undefined
          ? (target.tools.shown(name) ?? [])
          : [name];
      });
      warnAboutToolNames(session.options.log, target, names);
      const isMore = message.kind === 'request' && message.params['cursor'] !== undefined;
      toolsListed(
        target,
        names.flatMap((name) => stringIn(name) ?? []),
        isMore,
      );
    }
    return filter(text, response);
  };
}

/** Extends `rewrite` to record an accepted request that must be sent again to a restarted server. */
function recordingReplayed(
  connection: Connection,
  message: RpcMessage,
  rewrite?: Rewrite,
): Rewrite | undefined {
  if (!ReplayedRequests.isReplayed(message.method)) return rewrite;
  return (text, response) => {
    if (response.error === undefined) connection.replayed.record(message);
    return rewrite === undefined ? text : rewrite(text, response);
  };
}

async function runList(call: ClientCall, list: ListMethod): Promise<void> {
  const { message, session } = call;
  refuseCursor(call);
  const listing = await listAll(call, message.method, list);
  const failing = listing.unavailable;
  const hasNone = listing.listed.length + listing.signIns.length === 0;
  if (hasNone || (session.options.failClosed && failing.length > 0)) {
    const reasons = failing.map(({ name, error }) => `target "${name}": ${error}`).join('; ');
    throw new RpcError(RPC.internalError, `no target answered: ${reasons}`);
  }
  if (list.kind === 'tool')
    for (const { connection, items } of listing.listed)
      warnAboutToolNames(
        session.options.log,
        connection.target,
        items.map(({ name }) => name),
      );
  const items = session.options.prefixed
    ? prefixedItems(call, list, listing)
    : unambiguousItems(call, list, listing);
  const { tools, unavailable } = withSignIns(call, listing.signIns, failing);
  const shown = list.kind === 'tool' ? withReadTool(call, [...items, ...tools]) : items;
  await endList(call, listResult(call, list.member, shown, unavailable));
}

function prefixedItems(call: ClientCall, list: ListMethod, { listed }: Listing): string[] {
  const { access } = call;
  return listed.flatMap(({ connection, items }) => {
    const target = connection.target.name;
    return items
      .filter(({ own }) => access?.allows(list.kind, target, own) ?? true)
      .map((item) => renamedItem(inBundle(call, list.kind, target, item), list, target));
  });
}

/** For `prefixMode: never`: omits names that several targets offer, because calls to them would be ambiguous. */
function unambiguousItems(call: ClientCall, list: ListMethod, { listed }: Listing): string[] {
  const { access, session } = call;
  const owners = new Map<string, number>();
  for (const { items } of listed) for (const { name } of items) owners.set(name, (owners.get(name) ?? 0) + 1);
  for (const [name, count] of owners) {
    if (count > 1)
      session.options.log.warn('mcp', 'several targets offer the same name; it is omitted', {
        kind: list.kind,
        name,
      });
  }
  return listed.flatMap(({ connection, items }) =>
    items
      .filter(
        ({ name, own }) =>
          owners.get(name) === 1 && (access?.allows(list.kind, connection.target.name, own) ?? true),
      )
      .map((item) => inBundle(call, list.kind, connection.target.name, item)),
  );
}

async function runOnOwner(call: ClientCall, item: NamedItem): Promise<void> {
  const { message } = call;
  const { kind } = item;
  const { connection, name } = await ownerOf(call, item);
  checkAccess(call, item, connection.target.name, name);
  recordName(call.log, kind, name);
  if (!(await isCallable(call, connection, item, name))) return;
  if (kind === 'task') return forwardInward(call, connection, message);
  const own = withName(message, item, name);
  const { guards } = call;
  const inward = guards === undefined ? own : await guarded(call, guards, connection, own);
  await forwardInward(call, connection, inward);
}

/** The message that guardrails leave; they may also change the headers of the call. Throws `RpcError` if one rejects it. */
async function guarded(
  call: ClientCall,
  guards: MessageGuards,
  { target }: Connection,
  message: RpcMessage,
): Promise<RpcMessage> {
  const guarded = await guards.request(message, target.name, call.signal);
  if (guarded === undefined) return message;
  const { message: checked, headers } = guarded;
  recordArguments(call, checked);
  if (headers !== undefined) call.headers = { ...call.headers, list: headers(call.headers.list) };
  return checked;
}

/** The message with another name of its item. */
function withName(message: RpcMessage, { namePath }: NamedItem, name: string): RpcMessage {
  const span = valueAt(message.text, ['params', ...namePath]);
  return span === undefined
    ? message
    : parseMessage(edit(message.text, [{ ...span, text: JSON.stringify(name) }]));
}

/** Forwards a call to one of several targets, with the target's ids and URIs in the request and the client's in the response. */
async function forwardInward(call: ClientCall, connection: Connection, message: RpcMessage): Promise<void> {
  const { method, params } = message;
  const { prefixed } = call.session.options;
  const target = connection.target.name;
  const text = inwardMessage(message.text, target, method);
  const inward = text === message.text ? message : parseMessage(text);
  const rewrite: Rewrite = (answer, { result }) =>
    outwardResult(prefixed ? outwardUris(answer, target) : answer, target, method, {
      mayBeTask: params['task'] !== undefined,
      isTask: membersOf(result)['resultType'] === 'task',
    });
  await forward(call, connection, inward, recordingReplayed(connection, inward, rewrite));
}

/** Throws `RpcError` if the caller may not use the item. `name` is the target's. */
function checkAccess(call: ClientCall, item: NamedItem, target: string, name = item.name): void {
  const { access, message, log } = call;
  const args = message.method === 'tools/call' ? (message.params['arguments'] ?? {}) : undefined;
  if (access === undefined || access.allows(item.kind, target, name, args)) return;
  call.denied();
  log.errorDetail ??= `the rules do not allow the ${item.kind} ${name} of ${target}`;
  if (args !== undefined && access.lists(target, name))
    throw new RpcError(RPC.invalidParams, `the rules do not allow these arguments of ${item.name}`);
  // The same error as for an unknown name, so that the caller does not learn that the item exists.
  throw unknownItem(item.kind, item.name);
}

function recordName(log: McpFields, kind: ItemKind, name: string): void {
  if (kind === 'tool') log.tool = name;
  else if (kind === 'prompt') log.prompt = name;
  else if (kind === 'task') log.task = name;
  else log.resourceUri = name;
}
