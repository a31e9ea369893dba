import { entryIn, isRecord, membersOf, parseJson } from '../../../core/foreign.ts';
import { members } from '../../kernel/json/json-text.ts';
import { type Form, hasForm, inForm } from './form.ts';
import { TOOL_MEMBERS } from './result-forms.ts';

// Clients check a list as a whole: one tool that their SDK cannot read hides all tools, with several targets those of the others too
// (claude-code#88049, claude-code#92900, hermes-agent#101669, kenn-io/msgvault#626, mastra#21859).

const TOOL: Form = { is: isRecord, members: TOOL_MEMBERS };

/** Whether clients can read a tool. `isModern`: those of revision 2026-07-28, in which results may be no objects. */
export function isReadableTool(tool: unknown, isModern: boolean): boolean {
  const { name, inputSchema, outputSchema, ...others } = membersOf(tool);
  return (
    isText(name) &&
    isObjectSchema(inputSchema) &&
    (outputSchema === undefined || (isModern ? isRecord : isObjectSchema)(outputSchema)) &&
    hasForm(TOOL, others)
  );
}

/**
 * The definition of a tool, as JSON text, that clients can read: without members of a wrong type, and with schemas in the only form
 * that the SDKs accept, which say the same since arguments are always an object. Undefined if the schema refuses every object.
 */
export function readableTool(text: string, isModern: boolean): string | undefined {
  const tool = membersOf(parseJson(text));
  if (isReadableTool(tool, isModern)) return text;
  if (!acceptsObjects(tool['inputSchema'])) return undefined;
  const kept = members(text).flatMap(([key, { start, end }]) => {
    const value = tool[key];
    const own = text.slice(start, end);
    if (key === 'inputSchema') return [];
    const isPlain = key !== 'outputSchema' || (isModern && isRecord(value));
    if (!isPlain && (isModern || !describesObject(value))) return [];
    const form = entryIn(TOOL_MEMBERS, key);
    const shown = isPlain ? (form === undefined ? own : inForm(form, own, value)) : objectSchema(value, own);
    return shown === undefined ? [] : [`${JSON.stringify(key)}:${shown}`];
  });
  const input = members(text).findLast(([key]) => key === 'inputSchema')?.[1];
  const own = input === undefined ? '{}' : text.slice(input.start, input.end);
  return `{${[...kept, `"inputSchema":${objectSchema(tool['inputSchema'], own)}`].join(',')}}`;
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

/** Whether a schema has the form that SDKs require at the top: `type`, and properties that are not booleans. */
function isObjectSchema(value: unknown): boolean {
  const { type, properties, required } = membersOf(value);
  return type === 'object' && areProperties(properties) && areNames(required);
}

const areProperties = (value: unknown): boolean =>
  value === undefined || (isRecord(value) && Object.values(value).every(isRecord));

const areNames = (value: unknown): boolean =>
  value === undefined || (Array.isArray(value) && value.every(isText));

/** Whether a schema accepts some object. One that says nothing does: absent, null, `true`, and `[]`, as PHP writes `{}`. */
function acceptsObjects(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (!isRecord(value)) return value === undefined || value === null || value === true;
  const { type } = value;
  return (
    type === undefined ||
    type === null ||
    type === 'object' ||
    (Array.isArray(type) && type.includes('object'))
  );
}

/** Whether all results are objects. Without the schema, a client does not miss `structuredContent`. */
function describesObject(value: unknown): boolean {
  const { type, properties } = membersOf(value);
  return type === 'object' || ((type === undefined || type === null) && isRecord(properties));
}

/** A schema that accepts objects, in the form that SDKs require. */
function objectSchema(value: unknown, text: string): string {
  if (isObjectSchema(value)) return text;
  if (!isRecord(value)) return '{"type":"object"}';
  const kept = members(text).flatMap(([key, { start, end }]) => {
    const own = text.slice(start, end);
    if (key === 'type' || (key === 'required' && !areNames(value[key]))) return [];
    if (key !== 'properties' || areProperties(value[key])) return [`,${JSON.stringify(key)}:${own}`];
    return isRecord(value[key]) ? [`,"properties":${withoutBooleans(own)}`] : [];
  });
  return `{"type":"object"${kept.join('')}}`;
}

/** Properties, as JSON text, with schemas that are objects: `true` is `{}` (JSON Schema 2020-12, §4.3.2). */
function withoutBooleans(properties: string): string {
  const all = members(properties).map(([name, { start, end }]) => {
    const schema = properties.slice(start, end);
    const object = schema.startsWith('{') ? schema : schema === 'false' ? '{"not":{}}' : '{}';
    return `${JSON.stringify(name)}:${object}`;
  });
  return `{${all.join(',')}}`;
}
