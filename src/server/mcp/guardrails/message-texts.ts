import { elements, members, type Span, valueAt } from '../../kernel/json-text.ts';

/**
 * The texts of a message that guardrails check: arguments in requests; text contents, structured content and descriptions
 * in results. Not checked are `_meta`, ids, types, MIME types and base64 data.
 */

/** A text and its place in the message. `isFixed`: a key, number or URI, which cannot be masked without breaking the message. */
export interface MessageText extends Span {
  readonly value: string;
  readonly isFixed: boolean;
}

/** Texts of the parameters of a request: every value and key in `arguments`, and the `uri` of a resource. */
export function requestTexts(params: string): MessageText[] {
  const texts: MessageText[] = [];
  const uri = valueAt(params, ['uri']);
  if (uri !== undefined) addData(params, uri, true, texts);
  const args = valueAt(params, ['arguments']);
  if (args !== undefined) addData(params, args, false, texts);
  return texts;
}

/** Texts of a result. */
export function responseTexts(result: string): MessageText[] {
  const texts: MessageText[] = [];
  addProtocol(result, { start: 0, end: result.length }, texts);
  return texts;
}

/** Members of results that are no texts. */
const NO_TEXT = new Set(['_meta', 'type', 'role', 'mimeType', 'data', 'blob', 'taskId', 'nextCursor']);

/** Adds texts of an object that MCP defines. */
function addProtocol(json: string, { start, end }: Span, texts: MessageText[]): void {
  const first = json[start];
  if (first === '"') texts.push({ start, end, value: stringAt(json, start, end), isFixed: false });
  else if (first === '[') for (const item of elements(json, start)) addProtocol(json, item, texts);
  else if (first === '{')
    for (const [key, member] of members(json, start)) {
      if (key === 'structuredContent') addData(json, member, false, texts);
      else if (key === 'uri') addData(json, member, true, texts);
      else if (!NO_TEXT.has(key)) addProtocol(json, member, texts);
    }
}

/** Adds every string, number and key of data that a tool defines. */
function addData(json: string, { start, end }: Span, isFixed: boolean, texts: MessageText[]): void {
  const first = json[start];
  if (first === '"') texts.push({ start, end, value: stringAt(json, start, end), isFixed });
  else if (first === '[') for (const item of elements(json, start)) addData(json, item, isFixed, texts);
  else if (first === '{')
    for (const [key, member] of members(json, start)) {
      texts.push({ start: member.start, end: member.start, value: key, isFixed: true });
      addData(json, member, isFixed, texts);
    }
  else if (first === '-' || (first !== undefined && first >= '0' && first <= '9'))
    texts.push({ start, end, value: json.slice(start, end), isFixed: true });
}

const stringAt = (json: string, start: number, end: number): string =>
  JSON.parse(json.slice(start, end)) as string;
