import { createHash } from 'node:crypto';
import { elementsOf, membersOf, parseJson } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Connection } from '../connection/connection.ts';
import { warnAboutToolNames } from '../connection/target-warnings.ts';
import { outwardName, TOOL_LIST } from '../names/names.ts';
import { parseMessage } from '../protocol/message.ts';
import { RPC, RpcError, resultMessage } from '../protocol/protocol.ts';
import type { Session } from '../session/session.ts';
import {
  BadArguments,
  CALL_TOOL,
  innerCall,
  metaTools,
  readSearch,
  SEARCH_TOOL,
} from '../tool-search/meta-tools.ts';
import type { SearchableTool } from '../tool-search/tool-index.ts';
import type { ToolSearch } from '../tool-search/tool-search.ts';
import { answerError, type ClientCall, endList, recordArguments } from './call.ts';
import { listResult, refuseCursor } from './list-result.ts';
import { inBundle, type Listing, listAll, renamedItem, type TargetItems } from './lists.ts';
import { answerTool } from './own-tool.ts';
import { withReadTool } from './read-result.ts';
import { searchedSignIns, withSignIns } from './sign-in.ts';

const LIST = 'tools/list';
const CALL = 'tools/call';

/**
 * Runs a request on a backend with `toolSearch`: answers the list of tools and searches, and passes everything else to `run`,
 * also what `call_tool` stands for: so the same rules, guardrails, pins and limits apply as to a direct call.
 */
export function runWithSearch(
  call: ClientCall,
  search: ToolSearch,
  run: (call: ClientCall) => Promise<void> | undefined,
): Promise<void> | undefined {
  const { method, params } = call.message;
  if (method === LIST) return list(call, search);
  const name = method === CALL ? params['name'] : undefined;
  if (name === SEARCH_TOOL) return find(call, search);
  if (name === CALL_TOOL && !replaceCall(call)) return undefined;
  return run(call);
}

/** Replaces `call_tool` by the call that it stands for. Returns false if it was answered with what is wrong with it. */
function replaceCall(call: ClientCall): boolean {
  try {
    call.message = innerCall(call.message);
  } catch (error) {
    if (!(error instanceof BadArguments)) throw error;
    answerTool(call, CALL_TOOL, [error.message], true);
    return false;
  }
  call.isReplaced = true;
  // They repeat arguments of `call_tool`, which has none that are repeated.
  const list = call.headers.list.filter(
    (_text, index, all) => all[index - (index % 2)]?.toLowerCase().startsWith('mcp-param-') !== true,
  );
  call.headers = { ...call.headers, list };
  if (call.guards?.checksRequest(CALL) !== true) recordArguments(call, call.message);
  return true;
}

/** Answers `tools/list` with both tools of the gateway and the pinned ones. */
async function list(call: ClientCall, search: ToolSearch): Promise<void> {
  call.log.resourceType = 'tool';
  refuseCursor(call);
  const { tools, signIns, ...catalog } = await catalogOf(call);
  const { tools: signInTools, unavailable } = withSignIns(call, signIns, catalog.unavailable);
  const visible = tools.filter((tool) => isAllowed(call, tool));
  const servers = new Set(call.session.isFederated ? visible.map(({ target }) => target) : []);
  const pinned = visible
    .filter(({ name }) => search.isPinned(name))
    .map((tool) => inBundle(call, 'tool', tool.target, tool));
  const items = withReadTool(call, [...metaTools(search, [...servers]), ...pinned, ...signInTools]);
  await endList(call, listResult(call, TOOL_LIST.member, items, unavailable));
}

/** Answers `search_tools`. Guardrails check what was found as a list of tools. */
async function find(call: ClientCall, search: ToolSearch): Promise<void> {
  let read: ReturnType<typeof readSearch>;
  try {
    read = readSearch(call.message.params['arguments'], search);
  } catch (error) {
    if (!(error instanceof BadArguments)) throw error;
    answerTool(call, SEARCH_TOOL, [error.message], true);
    return;
  }
  const { tools, key, unavailable, signIns } = await catalogOf(call);
  const index = await search.indexOf(key, tools);
  const found: FoundTool[] = [];
  for (const position of index.search(read.query)) {
    const tool = tools[position];
    if (tool !== undefined && isAllowed(call, tool)) found.push(tool);
    if (found.length === read.limit) break;
  }
  const shown = await guarded(call, found);
  if (shown instanceof RpcError) {
    answerError(call, shown);
    return;
  }
  const texts =
    shown.length === 0 ? ['No tool matches these words. Try others.'] : [JSON.stringify(shown.map(brief))];
  if (unavailable.length > 0) {
    const reasons = unavailable.map(({ name, error }) => `"${name}" (${error})`).join(', ');
    texts.push(`Tools of these servers are missing, because they did not answer: ${reasons}`);
  }
  texts.push(...searchedSignIns(call, signIns));
  answerTool(call, SEARCH_TOOL, texts, false);
}

const isAllowed = ({ access }: ClientCall, { target, own }: FoundTool): boolean =>
  access?.allows('tool', target, own) ?? true;

/** What guardrails leave of found tools, or the error with which they refuse them. */
async function guarded(
  call: ClientCall,
  found: readonly FoundTool[],
): Promise<readonly unknown[] | RpcError> {
  const id = call.message.id ?? 'null';
  const text = resultMessage(
    id,
    `{"tools":[${found.map((tool) => inBundle(call, 'tool', tool.target, tool)).join(',')}]}`,
  );
  const request = parseMessage(`{"jsonrpc":"2.0","id":${id},"method":"${LIST}"}`);
  const targets = [...new Set(found.map(({ target }) => target))];
  const checked = await call.guards?.response(text, request, targets, call.signal);
  if (checked?.error !== undefined) return new RpcError(checked.error.code, checked.error.message);
  return elementsOf(membersOf(membersOf(parseJson(checked?.text ?? text))['result'])['tools']);
}

/** What a call needs: annotations say whether to ask the user first. The version of JSON Schema only costs tokens. */
function brief(tool: unknown): object {
  const { name, title, description, annotations, inputSchema } = membersOf(tool);
  const { $schema: _, ...schema } = membersOf(inputSchema);
  return { name, title, description, annotations, inputSchema: schema };
}

/** A tool of a target: `name` and `text` are the client's. */
interface FoundTool extends SearchableTool {
  readonly name: string;
  readonly target: string;
  /** The target's name of it. */
  readonly own: string;
}

/** The tools of all targets of a session, before rules for the caller. */
interface Catalog extends Pick<Listing, 'unavailable' | 'signIns'> {
  readonly tools: readonly FoundTool[];
  /** Hash of the tools. */
  readonly key: string;
  /** In ms of `performance.now()`. */
  readonly listedAt: number;
}

const catalogs = new WeakMap<Session, Catalog>();

/** Lists in flight. Concurrent requests share them. */
const pending = new WeakMap<Session, Promise<Catalog>>();

/**
 * The tools of all targets. They are listed again after `list_changed` of a target, after a while if one failed, and at the
 * latest after `LIMITS.toolListAge`, since not all servers report changes.
 */
function catalogOf(call: ClientCall): Promise<Catalog> {
  const { session } = call;
  const { connections, nameIndex } = session;
  const known = catalogs.get(session);
  const isCurrent =
    known !== undefined &&
    performance.now() - known.listedAt < LIMITS.toolListAge &&
    !connections.some((connection) => nameIndex.isDue(connection, LIST));
  if (isCurrent) return Promise.resolve(known);
  const running = pending.get(session) ?? listCatalog(call).finally(() => pending.delete(session));
  pending.set(session, running);
  return running;
}

async function listCatalog(call: ClientCall): Promise<Catalog> {
  const { session } = call;
  const listedAt = performance.now();
  const { listed, unavailable, signIns } = await listAll(call, LIST, TOOL_LIST);
  if (session.options.failClosed && unavailable.length > 0) {
    const reasons = unavailable.map(({ name, error }) => `target "${name}": ${error}`).join('; ');
    throw new RpcError(RPC.internalError, `no target answered: ${reasons}`);
  }
  for (const { connection, items } of listed)
    warnAboutToolNames(
      session.options.log,
      connection.target,
      items.map(({ name }) => name),
    );
  const tools = session.options.prefixed ? listed.flatMap(prefixed) : unambiguous(listed);
  const hash = createHash('sha256');
  for (const { text } of tools) hash.update(text);
  const catalog = { tools, unavailable, signIns, listedAt, key: hash.digest('base64') };
  // Links expire, and users sign in.
  if (signIns.length === 0) catalogs.set(session, catalog);
  return catalog;
}

function prefixed({ connection, items }: TargetItems): FoundTool[] {
  const target = connection.target.name;
  return items.map(({ text, name: ownName, own }) => {
    const name = outwardName('tool', target, ownName);
    return { target, own, name, words: name, text: renamedItem(text, TOOL_LIST, target) };
  });
}

/** Without prefixes, calls of a name that several targets offer would be ambiguous. */
function unambiguous(listed: readonly TargetItems[]): FoundTool[] {
  const owners = new Map<string, Connection | undefined>();
  for (const { connection, items } of listed)
    for (const { name } of items) owners.set(name, owners.has(name) ? undefined : connection);
  return listed.flatMap(({ connection, items }) => {
    const target = connection.target.name;
    return items
      .filter(({ name }) => owners.get(name) === connection)
      .map(({ text, name, own }) => ({ target, own, name, words: `${target} ${name}`, text }));
  });
}
