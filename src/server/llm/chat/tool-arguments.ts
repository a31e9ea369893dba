import { isRecord } from '../../../core/foreign.ts';
import type { ToolCallPart } from './chat.ts';
import { functionArguments } from './custom-tools.ts';
import { isBlank } from './event-data.ts';
import { parseExactly } from './exact-json.ts';

/**
 * The arguments of a tool call as an object, for formats that have them in this form. Models that do not enforce a schema
 * may write invalid JSON or another value: it becomes a member of an object, so that the tool refuses it and the
 * conversation goes on.
 */
export function parseArguments(text: string): unknown {
  if (text.trim() === '') return {};
  const input = parseExactly(text);
  // A number that JavaScript cannot hold is an object here, too.
  return isRecord(input) && text.trimStart().startsWith('{') ? input : { [INVALID]: text };
}

const INVALID = 'invalid_arguments';

/** The arguments of a call, also of a custom tool, as an object. */
export const callArguments = (call: ToolCallPart): unknown => parseArguments(functionArguments(call));

/**
 * Whether the first piece of streamed arguments is an empty object. Servers that hold arguments as a value begin a call with it and
 * send the real ones afterwards (ogx-ai/ogx#5462, unslothai/unsloth#10275).
 */
export const isPlaceholder = (text: string): boolean => /^\s*\{\s*\}\s*$/.test(text);

/** The JSON text of arguments, for which some servers send the value itself. '' for none, also for null and an empty list. */
export function argumentsText(value: unknown): string {
  if (typeof value === 'string') return value;
  return isBlank(value) ? '' : JSON.stringify(value);
}
