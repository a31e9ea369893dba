import { elementsOf, entryIn, isRecord, membersOf, parseJson } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import { edit, valueAt, withoutMembers } from '../../kernel/json/json-text.ts';
import { withoutNulls } from './absent-members.ts';
import { hasForm, inForm, unreadableElements } from './form.ts';
import { MCP_METHODS } from './protocol.ts';
import { RESULT_FORMS } from './result-forms.ts';

/** Methods whose result is that of a tool. */
const TOOL_RESULTS: ReadonlySet<string> = new Set(['tools/call', 'tasks/result']);

/**
 * A response, as JSON text, that clients can read, of which `result` was parsed. Results of methods that MCP does not define, and
 * those that cannot be repaired, stay as sent. `isModern`: those of revision 2026-07-28, in which `structuredContent` may be any value. Before, it is an object, and clients
 * refuse a result with a list there (naw103/foremerge#28): the list becomes the text that other clients expect, if there is none.
 */
export function readableResult(text: string, method: string, result: unknown, isModern: boolean): string {
  if (!MCP_METHODS.has(method)) return text;
  const formed = inResultForm(text, method, result);
  if (formed === undefined) return text;
  const value = formed === text ? result : membersOf(parseJson(formed))['result'];
  const plain = withoutNulls(formed, 'result', value);
  const { structuredContent, content } = membersOf(value);
  if (isModern || structuredContent === undefined || isRecord(structuredContent)) return plain;
  if (!TOOL_RESULTS.has(method)) return plain;
  const bare = withoutMembers(plain, ['result'], (key) => key === 'structuredContent');
  if (structuredContent === null || elementsOf(content).length > 0) return bare;
  const span = valueAt(bare, ['result']);
  if (span === undefined) return bare;
  const block = { type: 'text', text: JSON.stringify(structuredContent) };
  const rest = withoutMembers(bare.slice(span.start, span.end), [], (key) => key === 'content');
  const members = rest.slice(1, -1).trim();
  const shown = `{${members === '' ? '' : `${members},`}"content":${JSON.stringify([block])}}`;
  return edit(bare, [{ ...span, text: shown }]);
}

/** Undefined if clients cannot read the result, and it cannot be repaired within the limits. */
function inResultForm(text: string, method: string, result: unknown): string | undefined {
  const { resultType = 'complete' } = membersOf(result);
  // A request for input has other members (2026-07-28), and an error has no result.
  const form = isRecord(result) && resultType === 'complete' ? entryIn(RESULT_FORMS, method) : undefined;
  if (form === undefined || hasForm(form, result)) return text;
  if (unreadableElements(form, result) > LIMITS.repairedElements) return undefined;
  const span = valueAt(text, ['result']);
  const shown = span && inForm(form, text.slice(span.start, span.end), result);
  if (span === undefined || shown === undefined) return undefined;
  const formed = edit(text, [{ ...span, text: shown }]);
  return Buffer.byteLength(formed) > LIMITS.targetMessageBytes ? undefined : formed;
}
