import type { Fact, FieldValue } from '../kernel/fact.ts';
import { GATEWAY } from '../kernel/gateway-name.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { a2aCall } from '../kernel/request/shared-slots.ts';
import { llmFacts } from '../llm/facts.ts';
import { llmCall } from '../llm/llm-call.ts';
import { mcpFacts } from '../mcp/facts.ts';
import { mcpFields } from '../mcp/request-fields.ts';
import type { RelayedConnection } from '../transport/listener/entrance.ts';
import { pickedEndpoints } from '../transport/picked-endpoints.ts';
import {
  a2aFacts,
  failoverFacts,
  firstFacts,
  lastFacts,
  pickedFacts,
  refusedFact,
  remainingFacts,
} from './request-facts.ts';

/** One access-log field. `quoted`: free text, always quoted in the text format. */
export type Field = readonly [name: string, value: FieldValue, style?: 'quoted'];

/** A fact that has a field. All have the same members, so that reading one costs no lookup by name. */
interface Reader<Source> {
  readonly name: string;
  readonly read: (source: Source) => FieldValue;
  readonly style: 'quoted' | undefined;
}

const readersOf = <Source>(facts: readonly Fact<Source>[]): readonly Reader<Source>[] =>
  facts.flatMap(({ name, read, isText }) =>
    name === undefined ? [] : [{ name, read, style: isText && 'quoted' }],
  );

const FIRST = readersOf(firstFacts);
const MCP = readersOf(mcpFacts);
const PICKED = readersOf(pickedFacts);
const LLM = readersOf(llmFacts);
const REFUSED = readersOf([refusedFact, ...failoverFacts]);
const A2A = readersOf(a2aFacts);
const LAST = readersOf(lastFacts);
const REMAINING = readersOf(remainingFacts);

const CONNECTION = ['gateway', 'listener', 'route', 'endpoint', 'src.addr', 'tls.server.name', 'protocol'];
const TRANSFERRED = ['bytes.received', 'bytes.sent', 'error', 'error.detail', 'duration'];

/** Names of all built-in fields. */
export const FIELD_NAMES: ReadonlySet<string> = new Set([
  ...[FIRST, MCP, PICKED, LLM, REFUSED, A2A, LAST].flatMap((readers) => readers.map(({ name }) => name)),
  ...CONNECTION,
  ...TRANSFERRED,
]);

/** The built-in fields of an access-log line, in printing order; fields whose value is undefined are omitted. */
export function requestFields(ctx: RequestContext, status: number): Field[] {
  const fields: Field[] = [];
  const ended = { ctx, status };
  addFields(fields, FIRST, ended);
  addFields(fields, MCP, mcpFields.get(ctx));
  addFields(fields, PICKED, pickedEndpoints.get(ctx));
  addFields(fields, LLM, llmCall.get(ctx));
  addFields(fields, REFUSED, ended);
  addFields(fields, A2A, a2aCall.get(ctx));
  addFields(fields, LAST, ended);
  return fields;
}

/** What is left to say of a request whose fields could not be made: only what the gateway itself has set. */
export function remainingFields(ctx: RequestContext, status: number): Field[] {
  const fields: Field[] = [];
  addFields(fields, REMAINING, { ctx, status });
  return fields;
}

function addFields<Source>(
  fields: Field[],
  readers: readonly Reader<Source>[],
  source: Source | undefined,
): void {
  if (source === undefined) return;
  for (const { name, read, style } of readers) add(fields, name, read(source), style);
}

/** The fields of a connection whose bytes were passed on (`tcpRoutes`), in printing order. */
export function connectionFields(connection: RelayedConnection): Field[] {
  const fields: Field[] = [];
  add(fields, 'gateway', GATEWAY.label);
  add(fields, 'listener', connection.listener);
  add(fields, 'route', connection.route);
  add(fields, 'endpoint', connection.endpoint);
  add(fields, 'src.addr', connection.client);
  add(fields, 'tls.server.name', connection.serverName);
  add(fields, 'protocol', 'tcp');
  add(fields, 'bytes.received', connection.received);
  add(fields, 'bytes.sent', connection.sent);
  add(fields, 'error', connection.error, 'quoted');
  add(fields, 'error.detail', connection.detail, 'quoted');
  add(fields, 'duration', `${Math.round(connection.duration)}ms`);
  return fields;
}

/** Most fields of most requests have no value: a list of all of them was a twelfth of what a request allocates. */
function add(fields: Field[], name: string, value: FieldValue, style?: 'quoted'): void {
  if (value !== undefined) fields.push(style === undefined ? [name, value] : [name, value, style]);
}
