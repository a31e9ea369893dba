import { LIMITS } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import { VERSION } from '../../core/version.ts';
import { Connection } from './connection.ts';
import { initializing } from './open-target.ts';
import { LATEST_SESSION_REVISION } from './protocol.ts';
import type { Target } from './target.ts';

const CLIENT = {
  protocolVersion: LATEST_SESSION_REVISION,
  capabilities: {},
  clientInfo: { name: 'agctl', version: VERSION },
};

/**
 * Connects to a target as a client without capabilities, returns the names of its tools, and closes the target. Rejects with
 * the error that clients and the log would get.
 */
export async function toolsOf(target: Target, log: Log): Promise<readonly string[]> {
  const open = initializing(JSON.stringify(CLIENT), log);
  const connection = new Connection(target, log, open, () => undefined);
  try {
    const { rpc } = await connection.ready([]);
    if (!('tools' in (connection.capabilities ?? {}))) return [];
    const names: string[] = [];
    let cursor: unknown;
    for (let page = 0; page < LIMITS.listPages; page += 1) {
      const params = cursor === undefined ? undefined : JSON.stringify({ cursor });
      const { result } = await rpc.call('tools/list', params, [], target.limits.listPageTimeout);
      const { tools, nextCursor } = (result ?? {}) as { tools?: unknown; nextCursor?: unknown };
      if (!Array.isArray(tools)) throw new Error('its response to tools/list has no `tools` list');
      names.push(...tools.map((tool: { name?: unknown } | null) => String(tool?.name)));
      cursor = nextCursor;
      if (typeof cursor !== 'string') break;
    }
    return names;
  } finally {
    await connection.close();
    await target.close();
  }
}
