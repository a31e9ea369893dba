import { INITIALIZE, type Json } from '../../kit/mcp.ts';
import { envelope } from '../../kit/modern.ts';
import { must } from '../judge.ts';
import { oneOf } from '../mutate.ts';
import { fuzz } from '../runner.ts';
import { mcpKind, paramsOf } from './bench.ts';
import { heard } from './caller.ts';

const METHODS = [
  'initialize',
  'ping',
  'tools/list',
  'tools/call',
  'prompts/get',
  'resources/read',
  'completion/complete',
  'logging/setLevel',
  'resources/subscribe',
  'tasks/get',
];

const MESSAGES: readonly object[] = [
  { jsonrpc: '2.0', method: 'notifications/initialized' },
  { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1, reason: 'no' } },
  { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 1, progress: 1 } },
  { jsonrpc: '2.0', method: 'notifications/roots/list_changed' },
  { jsonrpc: '2.0', id: 'r1', result: { roots: [{ uri: 'file:///', name: 'x' }] } },
  { jsonrpc: '2.0', id: 'r1', error: { code: -32601, message: 'no' } },
];

fuzz('MCP messages of clients', 150, () =>
  mcpKind(async (trial, lane, bench) => {
    const { random } = trial;
    const caller = await bench.callerOf(lane);
    const method = oneOf(random, METHODS);
    const own: Json = method === 'initialize' ? INITIALIZE.params : (paramsOf(method, lane) ?? {});
    const params =
      lane.client === 'modern'
        ? { ...own, _meta: envelope({ sampling: {} }) }
        : { ...own, _meta: { progressToken: 7 } };
    const good = random(5) === 0 ? oneOf(random, MESSAGES) : { jsonrpc: '2.0', id: 77, method, params };
    const body = trial.mutate(good);
    const name = own.name ?? own.uri;
    const headers: Record<string, string> =
      lane.client === 'modern'
        ? {
            'mcp-method': method,
            'mcp-param-a': 'ann@example.com',
            ...(name !== undefined && { 'mcp-name': name }),
          }
        : {};
    trial.note(`${lane.transport} ${lane.server} for ${lane.client} (${lane.targets})`);
    trial.note(body);
    const answered = await caller.raw(body, trial.name, headers);
    trial.note(`HTTP ${answered.status} ${answered.text}`);
    const id = idIn(body);
    if (answered.status === 202 || answered.status === 204)
      must(answered.text === '', 'a body', answered.text);
    // An id that is none, such as an object, cannot be repeated.
    else {
      const { isFailure } = heard(answered, id);
      must(!isFailure || answered.status < 500, `HTTP ${answered.status}`, answered.text);
    }
    // What a client sends may end its own session, and no other.
    if (answered.status === 404) lane.caller = undefined;
  }),
);

/** The id that a response must have: null if the request has none that JSON-RPC allows. */
function idIn(body: string): unknown {
  try {
    const { id } = JSON.parse(body) as Json;
    return typeof id === 'string' || Number.isInteger(id) ? id : null;
  } catch {
    return null;
  }
}
