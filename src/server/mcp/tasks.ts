import { edit, valueAt } from '../kernel/json-text.ts';
import type { ClientCall } from './call.ts';
import type { Connection } from './connection.ts';
import { type Listing, type ListShape, listingOf, listResult, listTarget } from './lists.ts';
import { RPC, RpcError } from './protocol.ts';
import type { Session } from './session.ts';
import { inwardTask, outwardTask } from './task-ids.ts';
import { withTimeout } from './timeouts.ts';
import { traced } from './traced.ts';

const LIST = 'tasks/list';
const SHAPE: ListShape = { member: 'tasks', nameKey: 'taskId' };

/** The target of an item, and the item's name there. */
export interface Owner {
  readonly connection: Connection;
  readonly name: string;
}

/** Returns the target of a task by the client's id. Throws `RpcError` for an unknown task. */
export function ownerOfTask({ connections }: Session, taskId: string): Owner {
  const addressed = inwardTask(taskId);
  const connection = connections.find(({ target }) => target.name === addressed?.target);
  if (addressed === undefined || connection === undefined)
    throw new RpcError(RPC.invalidParams, `Unknown task: ${taskId}`);
  return { connection, name: addressed.name };
}

/** Answers `tasks/list` with the tasks of all targets that support it, except those that rules deny. */
export async function listTasks(call: ClientCall): Promise<void> {
  const { session, message, stream, observer, access } = call;
  const able = session.connections.filter(canListTasks);
  if (able.length === 0) throw new RpcError(RPC.methodNotFound, `method not found: ${LIST}`);
  const results = await Promise.allSettled(
    able.map((connection) => {
      const own = withTimeout(listTarget(connection, call, LIST, SHAPE));
      return observer === undefined ? own : traced(observer, connection.target, own);
    }),
  );
  const { listed, unavailable }: Listing = listingOf(able, results);
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
  stream.end(listResult(message.id ?? 'null', SHAPE.member, items, unavailable));
}

/** Capabilities are unknown in a resumed session: the server gets the request and may reject it. */
function canListTasks({ capabilities }: Connection): boolean {
  if (capabilities === undefined) return true;
  const { tasks } = capabilities as { tasks?: { list?: unknown } | null };
  return tasks?.list !== undefined && tasks.list !== false;
}
