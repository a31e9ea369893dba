import { errorType, messageOf } from '../../../core/errors.ts';
import { membersOf } from '../../../core/foreign.ts';
import { type Edit, edit, elements, stringAt, valueAt, withText } from '../../kernel/json/json-text.ts';
import { withTraceparent } from '../../kernel/request/header-changes.ts';
import { callSpan, traced } from '../connection/call-trace.ts';
import type { ClientHeaders } from '../connection/client-headers.ts';
import type { Connection } from '../connection/connection.ts';
import type { JsonRpcConnection } from '../connection/json-rpc-connection.ts';
import { ListPages } from '../connection/list-pages.ts';
import { toolsListed } from '../connection/seen-tools.ts';
import { isErrorStatus, signInOf, withTimeout } from '../connection/target-failure.ts';
import { warnAboutToolNames, warnAboutUnreadableTool } from '../connection/target-warnings.ts';
import { type ItemKind, type ListMethod, outwardName, outwardTask } from '../names/names.ts';
import { UNANNOUNCED } from '../protocol/initialize-result.ts';
import type { RpcMessage } from '../protocol/message.ts';
import { RPC, RpcError } from '../protocol/protocol.ts';
import { readableResult } from '../protocol/readable-result.ts';
import { readableTool } from '../protocol/readable-tool.ts';
import { waitForFirstTarget } from '../session/initialize.ts';
import { UpstreamSessionLost } from '../targets/http/session-loss.ts';
import type { ListSource } from '../tool-pinning/tool-pins.ts';
import type { ClientCall } from './call.ts';
import { listResult, refuseCursor, type Unavailable } from './list-result.ts';
import { recordListed } from './listed-names.ts';
import { type TargetSignIn, withSignIns } from './sign-in.ts';

/** An item of a list as JSON text. `name` is the one in the text, `own` the target's, which `targets[].tools` can change. */
interface ListedItem {
  readonly text: string;
  readonly name: string;
  readonly own: string;
}

/** Items of one target, as clients see them except for a prefix. */
export interface TargetItems {
  readonly connection: Connection;
  readonly items: readonly ListedItem[];
}

/** Items of all targets in the order of the configuration, and the targets that failed. */
export interface Listing {
  readonly listed: readonly TargetItems[];
  readonly unavailable: readonly Unavailable[];
  /** Targets that are missing until the user has signed in. */
  readonly signIns: readonly TargetSignIn[];
}

/**
 * Lists these targets in parallel, all pages. Targets without the list count as empty. Unless the backend is `failClosed`,
 * targets that take longer than `LIMITS.targetResponseWait` are unavailable.
 */
export async function listAll(
  call: ClientCall,
  method: string,
  list: ListMethod,
  connections: readonly Connection[] = call.session.connections,
): Promise<Listing> {
  if (!call.session.options.failClosed) await waitForFirstTarget(call.session, call.headers);
  const { nameIndex, options } = call.session;
  const changes = connections.map((connection) => nameIndex.changesOf(connection));
  const results = await Promise.allSettled(
    connections.map((connection) => {
      const send = (): Promise<TargetItems['items']> => {
        const own = listTarget(connection, call, method, list);
        return call.observer === undefined ? own : traced(call.observer, connection.target, own);
      };
      if (options.failClosed) return send();
      return connection.timedOutLists.request(method, send, () => connection.changed(capabilityOf(method)));
    }),
  );
  if (!options.prefixed || options.toolSearch !== undefined)
    for (const [index, connection] of connections.entries()) {
      const result = results[index];
      const items = result?.status === 'fulfilled' ? result.value : undefined;
      nameIndex.record(connection, method, items, changes[index] ?? 0);
    }
  return listingOf(connections, results);
}

/** Splits the results of these targets into lists, failures, and sign-ins that are missing. */
function listingOf(
  connections: readonly Connection[],
  results: readonly PromiseSettledResult<TargetItems['items']>[],
): Listing {
  const listed: TargetItems[] = [];
  const unavailable: Unavailable[] = [];
  const signIns: TargetSignIn[] = [];
  for (const [index, connection] of connections.entries()) {
    const result = results[index];
    if (result === undefined) continue;
    const { name } = connection.target;
    if (result.status === 'fulfilled') {
      listed.push({ connection, items: result.value });
      continue;
    }
    const link = signInOf(result.reason);
    if (link === undefined) unavailable.push({ name, error: messageOf(result.reason) });
    else signIns.push({ name, link });
  }
  return { listed, unavailable, signIns };
}

const capabilityOf = (method: string): string => method.split('/')[0] ?? '';

/** Member of a result that holds the items of a list, and member of an item that names it. */
type ListShape = { readonly member: string; readonly nameKey: string; readonly kind?: ItemKind };

/** Requests all pages of one target's list, up to `LIMITS.listPages`. Empty if the target does not offer the list. */
export async function listTarget(
  connection: Connection,
  call: ClientCall,
  method: string,
  list: ListShape,
): Promise<TargetItems['items']> {
  try {
    const items = await listPages(connection, call, method, list);
    if (method === 'tools/list') {
      connection.listedTools = items.length;
      toolsListed(
        connection.target,
        items.map(({ name }) => name),
      );
      // Also if it has none, of which nothing was read.
      call.session.options.unmatched?.completed(connection.target.name, call.session.options.log);
    }
    return items;
  } catch (error) {
    // Capabilities are unknown in a resumed session, so the request may reach a server without the list.
    if (error instanceof RpcError && error.code === RPC.methodNotFound) return [];
    const isUnannounced = connection.capabilities?.[capabilityOf(method)] === UNANNOUNCED;
    if (isUnannounced && (error instanceof RpcError || isErrorStatus(error))) return [];
    const { rpc } = connection;
    if (!(error instanceof UpstreamSessionLost) || rpc === undefined || call.session.isClientUnknown)
      throw error;
    connection.dropSession(rpc);
    return listPages(connection, call, method, list);
  }
}

async function listPages(
  connection: Connection,
  call: ClientCall,
  method: string,
  list: ListShape,
): Promise<TargetItems['items']> {
  const { rpc } = await connection.readySoon(call.headers, true);
  // Servers answer "method not found" for capabilities that they did not announce, which only fills their logs.
  const capability = capabilityOf(method);
  if (connection.capabilities !== undefined && !(capability in connection.capabilities)) return [];
  const span = callSpan(call, connection.target, { method });
  if (span === undefined) {
    const meta = call.meta === undefined ? {} : { meta: { _meta: call.meta } };
    return readPages(connection, call, method, list, { rpc, headers: call.headers, ...meta });
  }
  const meta = { _meta: { ...call.meta, traceparent: span.traceparent } };
  try {
    const headers = { ...call.headers, list: withTraceparent(call.headers.list, span) };
    const items = await readPages(connection, call, method, list, { rpc, headers, meta });
    span.end();
    return items;
  } catch (error) {
    span.fail(messageOf(error), error instanceof RpcError ? String(error.code) : errorType(error));
    throw error;
  }
}

/** How pages are requested: `meta` has members of the parameters in addition to the cursor. */
interface PageRequest {
  readonly rpc: JsonRpcConnection;
  readonly headers: ClientHeaders;
  readonly meta?: object;
}

async function readPages(
  connection: Connection,
  call: ClientCall,
  method: string,
  list: ListShape,
  { rpc, headers, meta }: PageRequest,
): Promise<TargetItems['items']> {
  const items: ListedItem[] = [];
  const pages = new ListPages();
  const request = (): Promise<RpcMessage> => {
    const { cursor } = pages;
    const params =
      cursor === undefined && meta === undefined ? undefined : JSON.stringify({ ...meta, cursor });
    return rpc.call(method, params, headers, connection.target.limits.listPageTimeout, call.headTimeout);
  };
  for (;;) {
    let page: RpcMessage;
    try {
      page = await request();
    } catch (error) {
      if (pages.isEnd(error)) return items;
      throw error;
    }
    // Tools are compared with their pins first.
    const own =
      list.kind === 'tool'
        ? page.text
        : readableResult(page.text, method, page.result, call.meta !== undefined);
    const listed = namedItems(own, list);
    const fresh = listed.filter(({ own }) => pages.isNew(own));
    if (list.kind === 'tool' && fresh.length < listed.length)
      warnAboutToolNames(
        call.session.options.log,
        connection.target,
        listed.map(({ own }) => own),
      );
    // One by one: a page may have more items than a function takes arguments.
    for (const item of list.kind === 'tool' ? shownTools(fresh, call, connection) : fresh) items.push(item);
    const next = pages.next(page.result, listed.length);
    if (next === 'more') continue;
    if (next !== 'end')
      call.session.options.log.warn('mcp', `target ${next}; the rest is omitted`, {
        target: connection.target.name,
        method,
      });
    else if (list.kind === 'tool') reportUnmatched(call, connection);
    return items;
  }
}

/** The items of a list response. Those without a name are omitted: clients cannot use them. */
function namedItems(text: string, { member, nameKey }: ListShape): ListedItem[] {
  const span = valueAt(text, ['result', member]);
  if (span === undefined || text[span.start] !== '[') return [];
  return elements(text, span.start).flatMap(({ start, end }) => {
    const item = text.slice(start, end);
    const own = stringAt(item, [nameKey]);
    return own === undefined ? [] : [{ text: item, name: own, own }];
  });
}

/** Where lists of a connection come from. */
export function listSource({ session }: ClientCall, connection: Connection): ListSource {
  return { rpc: connection.rpc, changes: session.nameIndex.changesOf(connection) };
}

/**
 * The tools that clients see: those that `targets[].tools` shows, that match their pins and that clients can read, with their new
 * names.
 */
function shownTools(items: ListedItem[], call: ClientCall, connection: Connection): ListedItem[] {
  const { tools, pins } = connection.target;
  recordListed(
    call,
    connection,
    items.map(({ own }) => own),
  );
  tools?.unmatched.listed(items.map(({ own }) => own));
  const shown = items.flatMap((item) => {
    const name = tools === undefined ? item.own : tools.shown(item.own);
    return name === undefined ? [] : [{ ...item, name }];
  });
  const { unmatched, prefixed } = call.session.options;
  const clientName = (name: string): string =>
    prefixed ? outwardName('tool', connection.target.name, name) : name;
  unmatched?.listed(
    connection.target.name,
    shown.map(({ name }) => clientName(name)),
  );
  const accepted = pins === undefined ? shown : pins.check(shown, listSource(call, connection));
  return accepted.flatMap((item) => {
    // Pins are those of the target's own definition.
    const text = readableTool(item.text, call.meta !== undefined);
    if (text === undefined) {
      warnAboutUnreadableTool(call.session.options.log, connection.target, item.own);
      return [];
    }
    return [{ ...item, text: tools === undefined ? text : tools.edit(text, item.own) }];
  });
}

/** An item as the bundle of the call shows it. */
export function inBundle(
  { bundle }: ClientCall,
  kind: ItemKind,
  target: string,
  { text, own }: Pick<ListedItem, 'text' | 'own'>,
): string {
  return bundle === undefined || kind !== 'tool'
    ? text
    : withText(text, 'description', bundle.description(target, own));
}

/** Replaces the target's name of an item, as JSON text, with the client's. */
export function renamedItem(item: string, { kind, nameKey }: ListMethod, target: string): string {
  const edits: Edit[] = [];
  const rename = (path: readonly string[], as: typeof kind): void => {
    const span = valueAt(item, path);
    const name = stringAt(item, path);
    if (span !== undefined && name !== undefined)
      edits.push({ ...span, text: JSON.stringify(outwardName(as, target, name)) });
  };
  rename([nameKey], kind);
  // MCP Apps: a tool names the resource that displays its result.
  if (kind === 'tool')
    for (const path of [
      ['_meta', 'ui', 'resourceUri'],
      ['_meta', 'ui/resourceUri'],
    ])
      rename(path, 'resource');
  return edit(item, edits);
}

/** All tools of a target have been listed. */
function reportUnmatched({ session }: ClientCall, { target }: Connection): void {
  target.tools?.unmatched.report(session.options.log, target.name);
  session.options.unmatched?.completed(target.name, session.options.log);
}

/** Removes items from a list response of a single target that clients do not see, or that the caller may not use. */
export function filterList(
  text: string,
  list: ListMethod,
  call: ClientCall,
  connection: Connection,
  isAllowed: (own: string) => boolean,
): string {
  const span = valueAt(text, ['result', list.member]);
  if (span === undefined || text[span.start] !== '[') return text;
  const listed = namedItems(text, list);
  const shown = list.kind === 'tool' ? shownTools(listed, call, connection) : listed;
  const kept = shown.filter(({ own }) => isAllowed(own));
  if (list.kind === 'tool' && valueAt(text, ['result', 'nextCursor']) === undefined)
    reportUnmatched(call, connection);
  return edit(text, [
    {
      ...span,
      text: `[${kept.map((item) => inBundle(call, list.kind, connection.target.name, item)).join(',')}]`,
    },
  ]);
}

const LIST = 'tasks/list';
const SHAPE: ListShape = { member: 'tasks', nameKey: 'taskId' };

/** Answers `tasks/list` with the tasks of all targets that support it, except those that rules deny. */
export async function listTasks(call: ClientCall): Promise<void> {
  const { session, stream, observer, access } = call;
  refuseCursor(call);
  const able = session.connections.filter(canListTasks);
  if (able.length === 0) throw new RpcError(RPC.methodNotFound, `method not found: ${LIST}`);
  const results = await Promise.allSettled(
    able.map((connection) => {
      const own = withTimeout(listTarget(connection, call, LIST, SHAPE), connection.target.limits);
      return observer === undefined ? own : traced(observer, connection.target, own);
    }),
  );
  const { listed, ...others }: Listing = listingOf(able, results);
  if (listed.length === 0) throw new RpcError(RPC.internalError, 'no target answered');
  const items = listed.flatMap(({ connection: { target }, items: tasks }) =>
    tasks
      .filter(({ name }) => access?.allows('task', target.name, name) ?? true)
      .map(({ text, name }) => {
        const span = valueAt(text, [SHAPE.nameKey]);
        const id = JSON.stringify(outwardTask(target.name, name));
        return span === undefined ? text : edit(text, [{ ...span, text: id }]);
      }),
  );
  const { unavailable } = withSignIns(call, others.signIns, others.unavailable);
  stream.end(listResult(call, SHAPE.member, items, unavailable));
}

/** Capabilities are unknown in a resumed session: the server gets the request and may reject it. */
function canListTasks({ capabilities }: Connection): boolean {
  if (capabilities === undefined) return true;
  const { list } = membersOf(capabilities['tasks']);
  return list !== undefined && list !== false;
}
