import { elementsOf, membersOf, shownValue } from '../../core/foreign.ts';
import type { Log } from '../../core/log.ts';
import { VERSION } from '../../core/version.ts';
import type { DefinedTool } from '../kernel/probe.ts';
import { NO_HEADERS } from './connection/client-headers.ts';
import { Connection } from './connection/connection.ts';
import { ListPages } from './connection/list-pages.ts';
import type { Target } from './connection/target.ts';
import { initializing } from './eras/open-target.ts';
import { refusal } from './protocol/client-capabilities.ts';
import { LATEST_SESSION_REVISION, RPC, RpcError } from './protocol/protocol.ts';

const CLIENT = {
  protocolVersion: LATEST_SESSION_REVISION,
  capabilities: {},
  clientInfo: { name: 'agctl', version: VERSION },
};

/**
 * Connects to a target as a client without capabilities, returns its tools, and closes the target. It has no credentials
 * that are computed from requests of clients. Rejects with the error that clients and the log would get.
 */
export async function toolsOf(target: Target, log: Log): Promise<readonly DefinedTool[]> {
  const open = initializing(JSON.stringify(CLIENT), log);
  const connection = new Connection(target, log, open, (_connection, message, own) => {
    const refused = message.kind === 'request' ? refusal(message, CLIENT.capabilities) : undefined;
    if (refused !== undefined) own.send(refused, NO_HEADERS);
  });
  try {
    const { rpc } = await connection.ready(NO_HEADERS);
    if (!('tools' in (connection.capabilities ?? {}))) return [];
    const listed: DefinedTool[] = [];
    const pages = new ListPages();
    for (;;) {
      const { cursor } = pages;
      const params = cursor === undefined ? undefined : JSON.stringify({ cursor });
      const response = rpc.call('tools/list', params, NO_HEADERS, target.limits.listPageTimeout);
      const result = await response.then(
        (message) => message.result,
        (error: unknown) => {
          const isNone = error instanceof RpcError && error.code === RPC.methodNotFound;
          if (!isNone && !pages.isEnd(error)) throw error;
        },
      );
      if (result === undefined) return listed;
      const { tools } = membersOf(result);
      if (!Array.isArray(tools)) throw new Error('its response to tools/list has no `tools` list');
      for (const tool of elementsOf(tools)) {
        const own = nameOf(tool);
        if (pages.isNew(own)) listed.push({ own, text: JSON.stringify(tool) });
      }
      if (pages.next(result, tools.length) !== 'more') return listed;
    }
  } finally {
    await connection.close();
    await target.close();
  }
}

const nameOf = (tool: unknown): string => shownValue(membersOf(tool)['name']);
