import type { Connection } from '../connection/connection.ts';
import type { Target } from '../connection/target.ts';
import { type ItemKind, inwardName, inwardTask, type NamedItem, unknownItem } from '../names/names.ts';
import { RPC, RpcError } from '../protocol/protocol.ts';
import type { Session } from '../session/session.ts';
import type { ClientCall } from './call.ts';
import { listAll } from './lists.ts';

/** The target of an item, and the item's name there. */
interface Owner {
  readonly connection: Connection;
  readonly name: string;
}

/** Returns the target of an item and the item's name there. Throws `RpcError` if there is none or more than one. */
export async function ownerOf(call: ClientCall, item: NamedItem): Promise<Owner> {
  const { kind, name } = item;
  if (kind === 'task') return ownerOfTask(call.session, name);
  const owner = call.session.options.prefixed
    ? prefixedOwner(call, kind, name)
    : await listedOwner(call, kind, name);
  return { ...owner, name: ownName(item, owner.connection.target, owner.name) };
}

/** The target's name of an item; `name` is the client's without a prefix. Throws `RpcError` for a tool that is left out. */
export function ownName(item: NamedItem, { tools }: Target, name = item.name): string {
  const own = item.kind === 'tool' && tools !== undefined ? tools.own(name) : name;
  if (own === undefined) throw unknownItem(item.kind, item.name);
  return own;
}

/** Returns the target of a task by the client's id. Throws `RpcError` for an unknown task. */
function ownerOfTask({ connections }: Session, taskId: string): Owner {
  const addressed = inwardTask(taskId);
  const connection = connections.find(({ target }) => target.name === addressed?.target);
  if (addressed === undefined || connection === undefined)
    throw new RpcError(RPC.invalidParams, `Unknown task: ${taskId}`);
  return { connection, name: addressed.name };
}

function prefixedOwner({ session }: ClientCall, kind: ItemKind, outward: string): Owner {
  const addressed = inwardName(kind, outward);
  const connection = session.connections.find(({ target }) => target.name === addressed?.target);
  if (addressed === undefined || connection === undefined) throw unknownItem(kind, outward);
  return { connection, name: addressed.name };
}

async function listedOwner(call: ClientCall, kind: ItemKind, name: string): Promise<Owner> {
  const { nameIndex, connections } = call.session;
  const owners = await nameIndex.ownersOf(connections, kind, name, async (method, list, listed) => {
    await listAll(call, method, list, listed);
  });
  if (owners.length > 1)
    throw new RpcError(
      RPC.invalidParams,
      `several targets offer the ${kind} "${name}": set prefixMode to tell them apart`,
    );
  // A resource may be readable without being listed (templates): it is requested from the only target with resources.
  const [connection] =
    owners.length === 1 || kind === 'tool' || kind === 'prompt' ? owners : offering(call, 'resources');
  if (connection === undefined) throw unknownItem(kind, name);
  return { connection, name };
}

/** The only target with that capability; empty if there are none or several. */
function offering({ session }: ClientCall, capability: string): Connection[] {
  const able = session.connections.filter(
    (connection) => connection.capabilities !== undefined && capability in connection.capabilities,
  );
  return able.length === 1 ? able : [];
}
