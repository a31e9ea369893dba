import { elementsOf, isRecord, membersOf } from '../../../core/foreign.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { decodedValue, encodedValue } from './envelope.ts';
import { RPC, RpcError } from './protocol.ts';

// Parameters of tools that requests repeat in headers (2026-07-28, "Custom Headers from Tool Parameters").

/** A parameter, by its path in the arguments, and the header that repeats it. */
export interface ParamHeader {
  readonly path: readonly string[];
  /** In lower case. */
  readonly header: string;
}

/** The parameters of each tool that are repeated in headers. Tools without any are absent. */
export type ParamHeaders = ReadonlyMap<string, readonly ParamHeader[]>;

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Nesting of parameters that is searched; schemas of tools are much flatter. */
const MAX_DEPTH = 16;

/** Reads `x-mcp-header` from the tools of a result of `tools/list`. */
export function addParamHeaders(found: Map<string, readonly ParamHeader[]>, result: unknown): void {
  for (const tool of elementsOf(membersOf(result)['tools'])) {
    const { name, inputSchema } = membersOf(tool);
    const headers: ParamHeader[] = [];
    collect(inputSchema, [], headers);
    if (typeof name === 'string' && headers.length > 0) found.set(name, headers);
  }
}

function collect(schema: unknown, path: readonly string[], found: ParamHeader[]): void {
  const { properties } = membersOf(schema);
  if (!isRecord(properties) || path.length >= MAX_DEPTH) return;
  for (const [name, property] of Object.entries(properties)) {
    if (!isRecord(property)) continue;
    const declared = property['x-mcp-header'];
    const inner = [...path, name];
    if (typeof declared === 'string' && TOKEN.test(declared))
      found.push({ path: inner, header: `mcp-param-${declared.toLowerCase()}` });
    collect(property, inner, found);
  }
}

/** The headers for a call with these arguments: names and values, alternating. */
export function paramHeaders(declared: readonly ParamHeader[], args: unknown): string[] {
  return declared.flatMap(({ path, header }) => {
    const text = textOf(valueAtPath(args, path));
    return text === undefined ? [] : [header, encodedValue(text)];
  });
}

/**
 * Compares the headers of a call with its arguments, in place of a server that does not see headers. Returns the error for a
 * header that is missing, malformed or differs; a header without an argument is not compared.
 */
export function checkParamHeaders(
  declared: readonly ParamHeader[],
  args: unknown,
  headers: RequestContext['headers'],
): RpcError | undefined {
  for (const { path, header } of declared) {
    const value = valueAtPath(args, path);
    const text = textOf(value);
    if (text === undefined) continue;
    const inHeader = headers.get(header);
    const decoded = inHeader === undefined ? undefined : decodedValue(inHeader);
    // Integers may be written differently: 42 and 42.0 ("Server Validation").
    const isEqual =
      decoded === text || (typeof value === 'number' && decoded?.trim() !== '' && Number(decoded) === value);
    if (isEqual) continue;
    const expected = `params.arguments.${path.join('.')} in the body is ${JSON.stringify(value).slice(0, 100)}`;
    const problem = inHeader === undefined ? 'is missing' : `is ${JSON.stringify(inHeader.slice(0, 100))}`;
    return new RpcError(RPC.headerMismatch, `the header ${header} ${problem}, but ${expected}`);
  }
  return undefined;
}

function valueAtPath(args: unknown, path: readonly string[]): unknown {
  let value = args;
  for (const key of path) value = isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  return value;
}

/** The value as it is written in a header; undefined for null, absent and structured values, which have none. */
function textOf(value: unknown): string | undefined {
  return typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number'
    ? String(value)
    : undefined;
}
