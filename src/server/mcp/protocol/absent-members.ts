import { isRecord } from '../../../core/foreign.ts';
import { edit, elements, members, valueAt } from '../../kernel/json/json-text.ts';

// Serializers write every member of a class, and null for those without a value (Azure/data-api-builder#3599,
// jupyter-mcp-server#184, r33drichards/mcp-js#117). MCP has such members absent, and clients refuse all of what has one: the
// official SDK drops a result with `"_meta": null`, so that its call waits until it times out, and the list of all tools if one of
// them has `"readOnlyHint": null`.

/**
 * Members that may be null: by the schemas of MCP, and in its extension for tasks. All others of MCP are absent instead, so that a
 * member of a later revision is known, too.
 */
const NULLABLE: ReadonlySet<string> = new Set(['data', 'structuredContent', 'ttl', 'ttlMs']);

/** Members whose content is not that of MCP. */
const OPAQUE: ReadonlySet<string> = new Set(
  '_meta data experimental extensions input inputSchema metadata outputSchema requestedSchema structuredContent'.split(
    ' ',
  ),
);

/** The text of a message without the members that are null in its result or its parameters, of which `value` was parsed. */
export function withoutNulls(text: string, member: 'result' | 'params', value: unknown): string {
  // Most messages have none, and a search is cheaper than looking at each member.
  if (!text.includes('null') || !hasNull(value)) return text;
  const span = valueAt(text, [member]);
  return span === undefined ? text : edit(text, [{ ...span, text: plain(text.slice(span.start, span.end)) }]);
}

function hasNull(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasNull);
  if (!isRecord(value)) return false;
  for (const key in value) {
    const member = value[key];
    if (member === null ? !NULLABLE.has(key) : !OPAQUE.has(key) && hasNull(member)) return true;
  }
  return false;
}

function plain(json: string): string {
  if (json.startsWith('[')) {
    const all = elements(json).map(({ start, end }) => plain(json.slice(start, end)));
    return `[${all.join(',')}]`;
  }
  if (!json.startsWith('{')) return json;
  const kept = members(json).flatMap(([key, { start, end }]) => {
    const value = json.slice(start, end);
    if (value === 'null' && !NULLABLE.has(key)) return [];
    return [`${JSON.stringify(key)}:${OPAQUE.has(key) ? value : plain(value)}`];
  });
  return `{${kept.join(',')}}`;
}
