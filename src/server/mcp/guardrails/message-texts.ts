import { stringEnd } from '../../../core/json-members.ts';
import { isBase64, textsInBase64 } from '../../guardrails/encoded-text.ts';
import { members, type Span, stringOf } from '../../kernel/json/json-text.ts';
import { META } from '../protocol/protocol.ts';

/**
 * The texts of a message that guardrails check: every string of its parameters, its result or its error, whatever member it is
 * in, so that a member that MCP adds is read, too. What is not read is listed here and in docs/mcp-tools.md.
 */

/** A text and its place in the message. `isFixed`: a key, number or URI, which cannot be masked without breaking the message. */
export interface MessageText extends Span {
  readonly value: string;
  readonly isFixed: boolean;
  /** The string for a text that is encoded in the message, such as that of a file. */
  readonly encode?: ((text: string) => string) | undefined;
  /** Whether it is the text of a content block, which the next one continues. */
  readonly isBlock?: boolean;
}

/**
 * How a value is read. `protocol`: MCP defines it, so its strings are texts, but not its keys. `data`: a tool or the client
 * defines it. `meta`: `_meta`, whose values are for programs. `fixed`: what must not change. `skip`: not at all.
 */
type Mode = 'protocol' | 'data' | 'meta' | 'fixed' | 'skip';

/**
 * Members of parameters with another mode than `data`. `name` is that of a tool or prompt, about which rules decide; the
 * client has to return `requestState` as the server sent it.
 */
const PARAMS: ReadonlyMap<string, Mode> = new Map([
  ['name', 'skip'],
  ['requestState', 'skip'],
  ['uri', 'fixed'],
  ['_meta', 'meta'],
]);

/**
 * Texts of the parameters of a request: every value and key in `arguments`, the `uri` of a resource, the client's answers to
 * requests of the server (`inputResponses`), and every other member.
 */
export function requestTexts(params: string): MessageText[] {
  const texts: MessageText[] = [];
  for (const [key, { start }] of members(params)) {
    if (key === 'inputResponses' && params[start] === '{')
      for (const [, answer] of members(params, start))
        walk(params, answer.start, answerMode(params, answer), texts);
    else walk(params, start, PARAMS.get(key) ?? 'data', texts);
    if (!PLAIN_KEY.test(key)) texts.push({ start, end: start, value: key, isFixed: true });
  }
  return texts;
}

/** Only answers to elicitation have an `action`; their content is a form of the server. */
const answerMode = (params: string, { start }: Span): Mode =>
  params[start] !== '{' || members(params, start).some(([key]) => key === 'action') ? 'data' : 'protocol';

/** Texts of a JSON-RPC error: all of it but its code. */
export function errorTexts(error: string): MessageText[] {
  const texts: MessageText[] = [];
  for (const [key, { start }] of members(error)) if (key !== 'code') walk(error, start, 'data', texts);
  return texts;
}

/** Texts of a result. */
export function responseTexts(result: string): MessageText[] {
  const texts: MessageText[] = [];
  walk(result, 0, 'protocol', texts);
  return texts;
}

/** Members of results with a word of the protocol or an opaque value. Other values of these members are read, but must not change. */
const NO_TEXT: ReadonlyMap<string, RegExp> = new Map([
  ['type', /^[A-Za-z][\w.-]{0,63}$/],
  ['resultType', /^[A-Za-z][\w.-]{0,63}$/],
  ['role', /^[a-z]{1,32}$/],
  ['mimeType', /^[\w.+-]{1,127}\/[\w.+-]{1,127}(?:; ?[\w.=+-]{1,127})*$/],
  ['taskId', /^\S{1,512}$/],
  ['nextCursor', /^\S*$/],
  ['requestState', /^\S*$/],
]);

/** Members of `_meta` that the protocol defines, and trace ids (W3C Trace Context). */
const META_MEMBERS: ReadonlySet<string> = new Set([
  'progressToken',
  'traceparent',
  'tracestate',
  'io.modelcontextprotocol/related-task',
  ...Object.values(META),
]);

/** Base64 of files, images and recordings. */
const BYTES = new Set(['data', 'blob']);
const PLAIN_KEY = /^[\w.$@:/-]{1,64}$/;

function modeOf(key: string, mode: Mode): Mode {
  if (mode === 'meta') return META_MEMBERS.has(key) ? 'skip' : 'fixed';
  if (mode !== 'protocol') return mode;
  if (key === '_meta') return 'meta';
  if (key === 'structuredContent') return 'data';
  return key === 'uri' ? 'fixed' : 'protocol';
}

/**
 * Adds the texts of the value at or after `from`, and returns its end. Reads each character once: `members` of json-text
 * would read those of inner values once per level. `key`: the member of the value, which is in the object at `owner`.
 */
function walk(json: string, from: number, mode: Mode, texts: MessageText[], key = '', owner = -1): number {
  const start = skipSpace(json, from);
  switch (json[start]) {
    case '"': {
      const end = stringEnd(json, start);
      if (mode !== 'skip') addString(json, { start, end }, mode, texts, key, owner);
      return end;
    }
    case '{':
      return walkMembers(json, start, mode, texts);
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

function addString(
  json: string,
  { start, end }: Span,
  mode: Mode,
  texts: MessageText[],
  key: string,
  owner: number,
): void {
  const value = decoded(json, start, end);
  const word = mode === 'protocol' ? NO_TEXT.get(key) : undefined;
  if (word?.test(value) === true) return;
  if (mode === 'protocol') {
    if (BYTES.has(key) && isBase64(value)) {
      for (const { text, isFixed, encode } of textsInBase64(value, mimeTypeAt(json, owner)))
        texts.push({ start, end, value: text, isFixed, encode });
      return;
    }
  }
  texts.push({
    start,
    end,
    value,
    isFixed: mode === 'fixed' || word !== undefined,
    ...(mode === 'protocol' && key === 'text' && { isBlock: true }),
  });
}

/** The MIME type of the content that begins at `owner`. */
function mimeTypeAt(json: string, owner: number): string {
  const span = owner < 0 ? undefined : members(json, owner).find(([name]) => name === 'mimeType')?.[1];
  return span !== undefined && json[span.start] === '"' ? decoded(json, span.start, span.end) : '';
}

function walkMembers(json: string, start: number, mode: Mode, texts: MessageText[]): number {
  let at = skipSpace(json, start + 1);
  while (at < json.length && json[at] !== '}') {
    const keyEnd = stringEnd(json, at);
    const key = decoded(json, at, keyEnd);
    if (mode === 'data' || mode === 'fixed' || (mode !== 'skip' && !PLAIN_KEY.test(key)))
      texts.push({ start: at, end: keyEnd, value: key, isFixed: true });
    const colon = skipSpace(json, keyEnd);
    at = skipSpace(json, walk(json, colon + 1, modeOf(key, mode), texts, key, start));
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
