import { stringEnd } from '../../../core/json-members.ts';
import { stringOf } from '../../../server/kernel/json-text.ts';
import { members, type Span } from '../../kernel/json-text.ts';

/**
 * The texts of a message that guardrails check: arguments in requests; text contents, structured content and descriptions
 * in results; errors. Not checked are `_meta`, ids, types, MIME types and base64 data.
 */

/** A text and its place in the message. `isFixed`: a key, number or URI, which cannot be masked without breaking the message. */
export interface MessageText extends Span {
  readonly value: string;
  readonly isFixed: boolean;
}

/**
 * Texts of the parameters of a request: every value and key in `arguments`, the `uri` of a resource, and the client's
 * answers to requests of the server (`inputResponses`).
 */
export function requestTexts(params: string): MessageText[] {
  const texts: MessageText[] = [];
  for (const [key, { start }] of members(params)) {
    if (key === 'uri') walk(params, start, 'fixed', texts);
    else if (key === 'arguments') walk(params, start, 'data', texts);
    else if (key === 'inputResponses' && params[start] === '{')
      for (const [, answer] of members(params, start))
        walk(params, answer.start, answerMode(params, answer), texts);
  }
  return texts;
}

/** Only answers to elicitation have an `action`; their content is a form of the server. */
const answerMode = (params: string, { start }: Span): Mode =>
  params[start] !== '{' || members(params, start).some(([key]) => key === 'action') ? 'data' : 'protocol';

/** Texts of a JSON-RPC error: `message` and all of `data`. */
export function errorTexts(error: string): MessageText[] {
  const texts: MessageText[] = [];
  for (const [key, { start }] of members(error))
    if (key === 'message' || key === 'data') walk(error, start, 'data', texts);
  return texts;
}

/** Texts of a result. */
export function responseTexts(result: string): MessageText[] {
  const texts: MessageText[] = [];
  walk(result, 0, 'protocol', texts);
  return texts;
}

/** Members of results that are no texts. */
const NO_TEXT = new Set(['_meta', 'type', 'role', 'mimeType', 'data', 'blob', 'taskId', 'nextCursor']);

/**
 * How a value is read. `protocol`: MCP defines it, so its strings are texts, but not its keys. `data`: a tool defines it.
 * `fixed`: a string that must not change. `skip`: not at all.
 */
type Mode = 'protocol' | 'data' | 'fixed' | 'skip';

const modeOf = (key: string, mode: Mode): Mode => {
  if (mode !== 'protocol') return mode;
  if (key === 'structuredContent') return 'data';
  if (key === 'uri') return 'fixed';
  return NO_TEXT.has(key) ? 'skip' : 'protocol';
};

/**
 * Adds the texts of the value at or after `from`, and returns its end. Reads each character once: `members` of json-text
 * would read those of inner values once per level.
 */
function walk(json: string, from: number, mode: Mode, texts: MessageText[]): number {
  const start = skipSpace(json, from);
  switch (json[start]) {
    case '"': {
      const end = stringEnd(json, start);
      if (mode !== 'skip')
        texts.push({ start, end, value: decoded(json, start, end), isFixed: mode === 'fixed' });
      return end;
    }
    case '{':
      return walkMembers(json, start + 1, mode, texts);
    case '[': {
      let at = skipSpace(json, start + 1);
      while (at < json.length && json[at] !== ']') {
        at = skipSpace(json, walk(json, at, mode, texts));
        if (json[at] === ',') at += 1;
      }
      return at + 1;
    }
    default: {
      let end = start + 1;
      while (end < json.length && !/[\s,\]}]/.test(json.charAt(end))) end += 1;
      const isNumber = /[-0-9]/.test(json.charAt(start));
      if (isNumber && (mode === 'data' || mode === 'fixed'))
        texts.push({ start, end, value: json.slice(start, end), isFixed: true });
      return end;
    }
  }
}

function walkMembers(json: string, from: number, mode: Mode, texts: MessageText[]): number {
  let at = skipSpace(json, from);
  while (at < json.length && json[at] !== '}') {
    const keyEnd = stringEnd(json, at);
    const key = decoded(json, at, keyEnd);
    if (mode === 'data') texts.push({ start: at, end: keyEnd, value: key, isFixed: true });
    const colon = skipSpace(json, keyEnd);
    at = skipSpace(json, walk(json, colon + 1, modeOf(key, mode), texts));
    if (json[at] === ',') at = skipSpace(json, at + 1);
  }
  return at + 1;
}

function skipSpace(json: string, from: number): number {
  let at = from;
  while (json.charCodeAt(at) <= 32) at += 1;
  return at;
}

function decoded(json: string, start: number, end: number): string {
  const written = json.slice(start + 1, end - 1);
  return written.includes('\\') ? stringOf(json.slice(start, end)) : written;
}
