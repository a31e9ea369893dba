import { errorType, messageOf } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { withTraceparent } from '../kernel/header-changes.ts';
import { type Edit, edit, elements, valueAt } from '../kernel/json-text.ts';
import type { ClientCall } from './call.ts';
import type { Connection } from './connection.ts';
import type { JsonRpcConnection } from './json-rpc-connection.ts';
import { type ListMethod, outwardName } from './names.ts';
import { RPC, RpcError, resultMessage } from './protocol.ts';
import { firstUp } from './session-init.ts';
import { UpstreamSessionLost } from './targets/http-channel.ts';
import { callSpan } from './trace-context.ts';
import { traced } from './traced.ts';

/** Key in the `_meta` of a merged list that names the targets which are missing from it, and why. */
const UNAVAILABLE_META_KEY = 'agctl/unavailableTargets';

/** Items of one target, as JSON texts with the names that the target uses. */
export interface TargetItems {
  readonly connection: Connection;
  readonly items: readonly { readonly text: string; readonly name: string }[];
}

/** All items of all targets in the order of the configuration, with what could not be had. */
export interface Listing {
  readonly listed: readonly TargetItems[];
  readonly unavailable: readonly { readonly name: string; readonly error: string }[];
}

/** Lists these targets at once, following each one's pages. Targets that do not offer the list count as empty. */
export async function listAll(
  call: ClientCall,
  method: string,
  list: ListMethod,
  connections: readonly Connection[] = call.session.connections,
): Promise<Listing> {
  if (!call.session.options.failClosed) await firstUp(call.session, call.headers);
  const { nameIndex, options } = call.session;
  const changes = connections.map((connection) => nameIndex.changesOf(connection));
  const results = await Promise.allSettled(
    connections.map((connection) => {
      const ask = (): Promise<TargetItems['items']> => {
        const own = listTarget(connection, call, method, list);
        return call.observer === undefined ? own : traced(call.observer, connection.target, own);
      };
      if (options.failClosed) return ask();
      return connection.lateLists.inTime(method, ask, () => connection.changed(capabilityOf(method)));
    }),
  );
  if (!options.prefixed)
    for (const [index, result] of results.entries()) {
      const items = result.status === 'fulfilled' ? result.value : undefined;
      nameIndex.note(connections[index] as Connection, method, items, changes[index] as number);
    }
  return listingOf(connections, results);
}

/** Sorts the outcomes of asking these targets. */
export function listingOf(
  connections: readonly Connection[],
  results: readonly PromiseSettledResult<TargetItems['items']>[],
): Listing {
  const listed: TargetItems[] = [];
  const unavailable: { name: string; error: string }[] = [];
  for (const [index, result] of results.entries()) {
    const connection = connections[index] as Connection;
    if (result.status === 'fulfilled') listed.push({ connection, items: result.value });
    else unavailable.push({ name: connection.target.name, error: messageOf(result.reason) });
  }
  return { listed, unavailable };
}

/** The response to a list request; `_meta` names the targets that are missing from it. */
export function listResult(
  id: string,
  member: string,
  items: readonly string[],
  unavailable: Listing['unavailable'],
): string {
  const meta =
    unavailable.length === 0 ? '' : `,"_meta":${JSON.stringify({ [UNAVAILABLE_META_KEY]: unavailable })}`;
  return resultMessage(id, `{${JSON.stringify(member)}:[${items.join(',')}]${meta}}`);
}

const capabilityOf = (method: string): string => method.split('/')[0] as string;

/** Where the items of a list stand, and which member of an item names it. */
export type Pages = { readonly member: string; readonly nameKey: string };

/** All pages of one target's list. */
export async function listTarget(
  connection: Connection,
  call: ClientCall,
  method: string,
  list: Pages,
): Promise<TargetItems['items']> {
  try {
    return await listPages(connection, call, method, list);
  } catch (error) {
    // A server that was never asked for its capabilities in this process may not offer the list at all.
    if (error instanceof RpcError && error.code === RPC.methodNotFound) return [];
    const { peer } = connection;
    if (!(error instanceof UpstreamSessionLost) || peer === undefined || call.session.isResumed) throw error;
    connection.lost(peer);
    return listPages(connection, call, method, list);
  }
}

async function listPages(
  connection: Connection,
  call: ClientCall,
  method: string,
  list: Pages,
): Promise<TargetItems['items']> {
  const { peer } = await connection.readySoon(call.headers, true);
  // Servers answer "method not found" for what they did not announce: asking would only make noise in their logs.
  const capability = capabilityOf(method);
  if (connection.capabilities !== undefined && !(capability in connection.capabilities)) return [];
  const span = callSpan(call, connection.target, { method });
  if (span === undefined) return readPages(connection, call, method, list, { peer, headers: call.headers });
  const meta = { _meta: { traceparent: span.traceparent } };
  try {
    const headers = withTraceparent(call.headers, span);
    const items = await readPages(connection, call, method, list, { peer, headers, meta });
    span.end();
    return items;
  } catch (error) {
    span.fail(messageOf(error), error instanceof RpcError ? String(error.code) : errorType(error));
    throw error;
  }
}

/** How the pages are asked for: `meta` are members of the params beside the cursor. */
interface Asking {
  readonly peer: JsonRpcConnection;
  readonly headers: readonly string[];
  readonly meta?: object;
}

async function readPages(
  connection: Connection,
  call: ClientCall,
  method: string,
  list: Pages,
  { peer, headers, meta }: Asking,
): Promise<TargetItems['items']> {
  const items: { text: string; name: string }[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < LIMITS.listPages; page += 1) {
    const { text, result } = await peer.call(
      method,
      cursor === undefined && meta === undefined ? undefined : JSON.stringify({ ...meta, cursor }),
      headers,
      LIMITS.listAnswer,
    );
    items.push(...itemsOf(text, list));
    const next = (result as { nextCursor?: unknown } | null)?.nextCursor;
    if (typeof next !== 'string' || next === cursor) return items;
    cursor = next;
  }
  call.session.options.log.warn(
    'mcp',
    `target has more than ${LIMITS.listPages} pages; the rest is left out`,
    {
      target: connection.target.name,
      method,
    },
  );
  return items;
}

/** The items of a list response, as texts. Items without a name are left out: nobody could use them. */
function itemsOf(text: string, { member, nameKey }: Pages): { text: string; name: string }[] {
  const span = valueAt(text, ['result', member]);
  if (span === undefined || text[span.start] !== '[') return [];
  return elements(text, span.start).flatMap(({ start, end }) => {
    const item = text.slice(start, end);
    const name = stringAt(item, [nameKey]);
    return name === undefined ? [] : [{ text: item, name }];
  });
}

/** An item under the name that the client sees. */
export function renamedItem(item: string, { kind, nameKey }: ListMethod, target: string): string {
  const edits: Edit[] = [];
  const rename = (path: readonly string[], as: typeof kind): void => {
    const span = valueAt(item, path);
    const name = stringAt(item, path);
    if (span !== undefined && name !== undefined)
      edits.push({ ...span, text: JSON.stringify(outwardName(as, target, name)) });
  };
  rename([nameKey], kind);
  // MCP Apps: a tool names the resource that shows its result.
  if (kind === 'tool')
    for (const path of [
      ['_meta', 'ui', 'resourceUri'],
      ['_meta', 'ui/resourceUri'],
    ])
      rename(path, 'resource');
  return edit(item, edits);
}

/** A list response of a single target without the items that the caller may not use. */
export function filterList(text: string, list: ListMethod, isAllowed: (name: string) => boolean): string {
  const span = valueAt(text, ['result', list.member]);
  if (span === undefined || text[span.start] !== '[') return text;
  const kept = itemsOf(text, list).filter(({ name }) => isAllowed(name));
  return edit(text, [{ ...span, text: `[${kept.map((item) => item.text).join(',')}]` }]);
}

function stringAt(text: string, path: readonly string[]): string | undefined {
  const span = valueAt(text, path);
  if (span === undefined || text[span.start] !== '"') return undefined;
  return JSON.parse(text.slice(span.start, span.end)) as string;
}
