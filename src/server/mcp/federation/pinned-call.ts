import type { Connection } from '../connection/connection.ts';
import { type NamedItem, TOOL_LIST, unknownItem } from '../names/names.ts';
import { RPC, RpcError } from '../protocol/protocol.ts';
import type { ToolPins } from '../tool-pinning/tool-pins.ts';
import { type ClientCall, fail } from './call.ts';
import { listSource, listTarget } from './lists.ts';

const LIST = 'tools/list';

/** A list that reports a change invalidates itself, and is requested again; so may another session's meanwhile. */
const LIST_ATTEMPTS = 3;

/** Whether calls of a tool need `checkPin`. */
export const needsPin = ({ target }: Connection, { kind }: NamedItem): boolean =>
  kind === 'tool' && target.pins?.isEnforced === true;

/**
 * With `toolPinning: enforce`, lets only calls pass whose tool matches its pin. The tools are listed first if that is not
 * known for this connection: clients may call a tool of which they learned in an earlier session. Returns false if the list
 * failed, which was answered. Throws `RpcError` for a tool that has changed or is not listed.
 */
export async function checkPin(
  call: ClientCall,
  connection: Connection,
  item: NamedItem,
  own: string,
): Promise<boolean> {
  const { pins } = connection.target;
  if (pins === undefined) return true;
  const status = (): ReturnType<typeof pins.status> => pins.status(listSource(call, connection), own);
  try {
    for (let attempt = 0; attempt < LIST_ATTEMPTS && status() === 'unknown'; attempt += 1)
      await listOnce(call, connection, pins);
  } catch (error) {
    fail(call, connection, error);
    return false;
  }
  const found = status();
  if (found === 'accepted') return true;
  if (found !== 'changed') throw unknownItem(item.kind, item.name);
  throw new RpcError(
    RPC.invalidParams,
    `the tool ${item.name} has changed since it was pinned: review the change and delete its entry from the gateway's file of tool pins`,
  );
}

/** Lists in flight: concurrent calls share them. */
const pending = new WeakMap<Connection, Promise<unknown>>();

function listOnce(call: ClientCall, connection: Connection, pins: ToolPins): Promise<unknown> {
  const known = pending.get(connection);
  if (known !== undefined) return known;
  const listed = listCompletely(call, connection, pins).finally(() => pending.delete(connection));
  pending.set(connection, listed);
  return listed;
}

async function listCompletely(call: ClientCall, connection: Connection, pins: ToolPins): Promise<void> {
  const { revision } = pins;
  await listTarget(connection, call, LIST, TOOL_LIST);
  if (pins.revision === revision) pins.completed(listSource(call, connection));
}
