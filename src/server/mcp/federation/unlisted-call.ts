import type { Connection } from '../connection/connection.ts';
import { type NamedItem, TOOL_LIST, unknownItem } from '../names/names.ts';
import { type ClientCall, fail } from './call.ts';
import { listedNames } from './listed-names.ts';
import { listSource, listTarget } from './lists.ts';

const LIST = 'tools/list';

/** When a session has listed all tools of a target. */
interface Listed extends ReturnType<typeof listSource> {
  readonly epoch: number;
  /** In ms of `performance.now()`. */
  readonly at: number;
}

type Names = ReturnType<typeof listedNames>;

const lists = new WeakMap<Connection, Listed>();

/**
 * Refuses a call of a tool that is not listed, if its name resembles that of a listed one: rules decide by names as they are
 * written, and a lenient server could run the tool that they deny. Other unlisted tools may be called. The tools are listed first
 * if this session has not done so lately. Returns false if that failed, which was answered. Throws `RpcError`.
 */
export async function checkUnlisted(
  call: ClientCall,
  connection: Connection,
  item: NamedItem,
  own: string,
): Promise<boolean> {
  const names = listedNames(connection.target);
  try {
    if (!isCurrent(call, connection, names)) await listOnce(call, connection, names);
  } catch (error) {
    fail(call, connection, error);
    return false;
  }
  if (names.has(own) || !names.resembles(own)) return true;
  call.log.errorDetail =
    'the name differs from that of a listed tool in case, white space or Unicode form only';
  throw unknownItem(item.kind, item.name);
}

function isCurrent(call: ClientCall, connection: Connection, { epoch }: Names): boolean {
  const known = lists.get(connection);
  const { rpc, changes } = listSource(call, connection);
  return (
    known !== undefined &&
    known.rpc === rpc &&
    known.changes === changes &&
    known.epoch === epoch &&
    performance.now() - known.at < connection.target.limits.toolListAge
  );
}

/** Lists in flight: concurrent calls share them. */
const pending = new WeakMap<Connection, Promise<unknown>>();

function listOnce(call: ClientCall, connection: Connection, names: Names): Promise<unknown> {
  const known = pending.get(connection);
  if (known !== undefined) return known;
  const running = listCompletely(call, connection, names).finally(() => pending.delete(connection));
  pending.set(connection, running);
  return running;
}

async function listCompletely(call: ClientCall, connection: Connection, names: Names): Promise<void> {
  const { changes } = listSource(call, connection);
  await listTarget(connection, call, LIST, TOOL_LIST);
  const { rpc } = connection;
  lists.set(connection, { rpc, changes, epoch: names.epoch, at: performance.now() });
}
