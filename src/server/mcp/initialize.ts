import { VERSION } from '../../core/version.ts';
import { edit, valueAt } from '../kernel/json-text.ts';
import type { Connection, InitializeResult } from './connection.ts';
import type { RpcMessage } from './message.ts';
import { RPC, RpcError, resultMessage, SESSION_REVISIONS } from './protocol.ts';
import type { Session } from './session.ts';

/** Returns the `params` of an `initialize` request as JSON text. Throws `RpcError` without a `protocolVersion`. */
export function initializeParams(message: RpcMessage): string {
  const { params, text } = message;
  if (typeof params['protocolVersion'] !== 'string') {
    throw new RpcError(
      RPC.invalidParams,
      'expected params.protocolVersion to be a string, as in "2025-11-25"',
    );
  }
  const span = valueAt(text, ['params']);
  return span === undefined ? '{}' : text.slice(span.start, span.end);
}

/**
 * Creates the response to `initialize`: the response of a single target except for the id, or a merged one for several.
 * `text` is the response for the client, `version` the negotiated protocol revision.
 */
export async function initializeResponse(
  session: Session,
  request: RpcMessage,
): Promise<{ text: string; version: string }> {
  const ready = session.connections.filter(({ rpc }) => rpc !== undefined);
  const [only] = ready;
  if (session.connections.length === 1 && only !== undefined) {
    const { message, result } = await only.ready([]);
    const idSpan = valueAt(message.text, ['id']);
    const text =
      idSpan === undefined ? message.text : edit(message.text, [{ ...idSpan, text: request.id ?? 'null' }]);
    return { text, version: result.protocolVersion };
  }
  const results = await Promise.all(
    ready.map(async (connection) => ({ connection, ...(await connection.ready([])) })),
  );
  const version = lowestRevision([
    String(request.params['protocolVersion']),
    ...results.map(({ result }) => result.protocolVersion),
  ]);
  const merged = {
    protocolVersion: version,
    capabilities: mergedCapabilities([
      ...results.map(({ result }) => result),
      ...(ready.length < session.connections.length ? [{ capabilities: ASSUMED }] : []),
    ]),
    serverInfo: { name: 'agctl', version: VERSION },
    instructions: instructions(results, session.options.prefixed),
  };
  return { text: resultMessage(request.id ?? 'null', JSON.stringify(merged)), version };
}

/** Returns the oldest of these revisions. Unknown revisions count as the latest known one. */
export function lowestRevision(versions: readonly string[]): string {
  const ranks = versions.map((version) => (SESSION_REVISIONS as readonly string[]).indexOf(version));
  const known = ranks.filter((rank) => rank !== -1);
  return SESSION_REVISIONS[known.length === 0 ? SESSION_REVISIONS.length - 1 : Math.min(...known)] as string;
}

/** Assumed for a target that joins later: clients only request lists, and accept changes, that were announced. */
const ASSUMED = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true },
};

const MERGED = [
  'tools',
  'prompts',
  'resources',
  'logging',
  'completions',
  'tasks',
  'experimental',
  'extensions',
] as const;

/** Their lists change when a target joins late or restarts, even if no target announces `listChanged`. */
const LISTS = new Set<string>(['tools', 'prompts', 'resources']);

type Json = Readonly<Record<string, unknown>>;

/**
 * Union of the targets' capabilities, at every depth. If two targets have different values, such as the version of an
 * extension, the value of the first target is used; `false` is overridden by any other value.
 */
function mergedCapabilities(results: readonly Pick<InitializeResult, 'capabilities'>[]): Json {
  const merged = MERGED.flatMap((key) => {
    const values = results.map(({ capabilities }) => capabilities?.[key]).filter(isObject);
    if (values.length === 0) return [];
    const value = values.reduce<Json>(union, {});
    return [[key, LISTS.has(key) ? { ...value, listChanged: true } : value] as const];
  });
  return Object.fromEntries(merged);
}

/** Deep union of two objects. `Object.fromEntries` treats a member named `__proto__` like any other. */
function union(first: Json, second: Json): Json {
  const all = new Map(Object.entries(first));
  for (const [key, value] of Object.entries(second)) {
    const known = all.get(key);
    if (value === false && known !== undefined) continue;
    if (isObject(value)) all.set(key, union(isObject(known) ? known : {}, value));
    else if (known === undefined || known === false) all.set(key, value);
  }
  return Object.fromEntries(all);
}

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function instructions(
  results: readonly { connection: Connection; result: InitializeResult }[],
  prefixed: boolean,
): string {
  const preamble = prefixed
    ? 'This server is a gateway to several MCP servers. Tools and prompts are named target_name, resources target+uri.'
    : 'This server is a gateway to several MCP servers.';
  const blocks = results.flatMap(({ connection, result }) =>
    typeof result.instructions === 'string' ? [`[${connection.target.name}]\n${result.instructions}`] : [],
  );
  return [preamble, ...blocks].join('\n\n');
}
