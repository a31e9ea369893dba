import { isRecord } from '../../../core/foreign.ts';
import { edit, elements, members, valueAt } from '../../kernel/json/json-text.ts';
import { describedMembers } from './form.ts';
import { CONTENT_TYPES, RESULT_FORMS, TOOL_MEMBERS } from './result-forms.ts';

// Serializers write every member of a class, and null for those without a value (Azure/data-api-builder#3599,
// jupyter-mcp-server#184, r33drichards/mcp-js#117). MCP has such members absent, and clients refuse all of what has one: the
// official SDK drops a result with `"_meta": null`, so that its call waits until it times out, and the list of all tools if one of
// them has `"readOnlyHint": null`.

/**
 * Members that may be null: by the schemas of MCP, and in its extension for tasks. All others of MCP are absent instead, so that a
 * member of a later revision is known, too.
 */
const NULLABLE: ReadonlySet<string> = new Set(['data', 'structuredContent', 'ttl', 'ttlMs']);

/**
 * Members whose objects are those of MCP: those of results that have a form, and those of the other messages. Others are those of a tool or
 * an extension, in which null may mean something.
 */
const OF_MCP: ReadonlySet<string> = new Set([
  ...describedMembers([...Object.values(RESULT_FORMS), { is: isRecord, members: TOOL_MEMBERS }]),
  ...[
    'task tasks tools',
    // Of `initialize` and `server/discover`.
    'cancel capabilities completions elicitation list logging prompts requests resources roots sampling serverInfo',
    // Of requests of servers.
    'hints inputRequests modelPreferences params toolChoice',
  ].flatMap((names) => names.split(' ')),
]);

/** The member whose keys are those of the server. */
const KEYED = 'inputRequests';

/** Types of content in MCP, in requests for sampling, too; others are those of extensions. */
const TYPES: ReadonlySet<unknown> = new Set([...CONTENT_TYPES, 'tool_result', 'tool_use']);

/** Objects and lists of MCP in each other, at most: a server may nest them without end, and each level is read once more. */
const LEVELS = 16;

/** The text of a message without the members that are null in its result or its parameters, of which `value` was parsed. */
export function withoutNulls(text: string, member: 'result' | 'params', value: unknown): string {
  // Most messages have none, and a search is cheaper than looking at each member.
  if (!text.includes('null') || !hasNull(value)) return text;
  const span = valueAt(text, [member]);
  return span === undefined
    ? text
    : edit(text, [{ ...span, text: plain(text.slice(span.start, span.end), value) }]);
}

/** Whether the members of an object in that member are not those of MCP. */
const isForeign = ({ type }: Readonly<Record<string, unknown>>, parent: string): boolean =>
  parent === 'content' && typeof type === 'string' && !TYPES.has(type);

const isEntered = (key: string, parent: string): boolean => parent === KEYED || OF_MCP.has(key);

/** `parent`: the member that the value is. */
function hasNull(value: unknown, parent = '', level = 0): boolean {
  if (level === LEVELS) return false;
  if (Array.isArray(value)) return value.some((item) => hasNull(item, parent, level + 1));
  if (!isRecord(value) || isForeign(value, parent)) return false;
  for (const key in value) {
    const member = value[key];
    if (member === null) {
      if (!NULLABLE.has(key)) return true;
    } else if (isEntered(key, parent) && hasNull(member, key, level + 1)) return true;
  }
  return false;
}

function plain(json: string, value: unknown, parent = '', level = 0): string {
  if (!hasNull(value, parent, level)) return json;
  if (Array.isArray(value)) {
    const all = elements(json).map(({ start, end }, index) =>
      plain(json.slice(start, end), value[index], parent, level + 1),
    );
    return `[${all.join(',')}]`;
  }
  if (!isRecord(value)) return json;
  const kept = members(json).flatMap(([key, { start, end }]) => {
    const own = json.slice(start, end);
    if (own === 'null' && !NULLABLE.has(key)) return [];
    return [
      `${JSON.stringify(key)}:${isEntered(key, parent) ? plain(own, value[key], key, level + 1) : own}`,
    ];
  });
  return `{${kept.join(',')}}`;
}
