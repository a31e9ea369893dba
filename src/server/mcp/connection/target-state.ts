import type { TargetState } from '../../kernel/inspection.ts';
import type { Connection } from './connection.ts';

/** A target is `ready` if one session is connected to it. Its problem is reported if none is. */
export function targetState(name: string, connections: readonly (Connection | undefined)[]): TargetState {
  const open = connections.filter((connection) => connection?.rpc !== undefined);
  const website = open.find((connection) => connection?.website !== undefined)?.website;
  const tools = open.findLast((connection) => connection?.listedTools !== undefined)?.listedTools;
  if (open.length > 0)
    return {
      name,
      state: 'ready',
      connections: open.length,
      ...(website !== undefined && { website }),
      ...(tools !== undefined && { tools }),
    };
  if (connections.some((connection) => connection?.isAsleep)) return { name, state: 'idle', connections: 0 };
  const problem = connections.find((connection) => connection?.problem !== undefined)?.problem;
  if (problem !== undefined) return { name, state: 'failing', connections: 0, problem };
  return { name, state: connections.length > 0 ? 'connecting' : 'idle', connections: 0 };
}
