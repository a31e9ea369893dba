import { parseExactly } from './exact-json.ts';

/**
 * The arguments of a tool call as an object, for formats that have them in this form. Models that do not enforce a schema
 * may write invalid JSON: it becomes a member of an object, so that the tool refuses it and the conversation goes on.
 */
export function parseArguments(text: string): unknown {
  if (text.trim() === '') return {};
  const input = parseExactly(text);
  // A number that JavaScript cannot hold is an object here, too.
  const isObject = input !== undefined && text.trimStart().startsWith('{');
  return isObject ? input : { [INVALID]: text };
}

const INVALID = 'invalid_arguments';
