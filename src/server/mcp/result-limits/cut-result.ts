import { membersOf, parseJson, stringIn, textIn } from '../../../core/foreign.ts';
import {
  edit,
  elements,
  insertion,
  members,
  type Span,
  stringOf,
  valueAt,
  withoutMembers,
} from '../../kernel/json/json-text.ts';
import { BYTES_PER_TOKEN } from '../../kernel/token-estimate.ts';
import { partEnd } from './parts.ts';

/** A result of a tool that has more text than its limit. */
export interface CutResult {
  /** Bytes of text that are shown, and all that there are. */
  readonly shown: number;
  readonly total: number;
  /** What is not shown. Texts of several blocks are on lines of their own. */
  readonly rest: Buffer;
  /** The response with what is shown, and further blocks after it. */
  text(added: readonly object[]): string;
}

/** A block of content, as JSON text. */
interface Block {
  readonly json: string;
  /** The text in it that models read, and its place; undefined if there is none, such as in images. */
  readonly content:
    | {
        readonly path: readonly string[];
        readonly text: string;
        readonly bytes: number;
        readonly uri: string;
      }
    | undefined;
}

/**
 * Cuts the result in the JSON text of a response; undefined if it is within the limit. Text blocks and texts of embedded resources
 * are kept in order up to the limit, and all other blocks as they are. Structured content over the limit is removed, and
 * becomes the last text unless the texts repeat it, as they should (MCP 2025-06-18, "Structured Content").
 */
export function cutResult(text: string, maxTokens: number): CutResult | undefined {
  const most = maxTokens * BYTES_PER_TOKEN;
  // As JSON, texts are at least as long as they are.
  if (Buffer.byteLength(text) <= most) return undefined;
  const content = valueAt(text, ['result', 'content']);
  const hasContent = content !== undefined && text[content.start] === '[';
  const blocks = hasContent ? elements(text, content.start).map((span) => blockOf(sliced(text, span))) : [];
  const structured = valueAt(text, ['result', 'structuredContent']);
  const json = structured === undefined ? '' : sliced(text, structured);
  const isTextOver = bytesOf(blocks) > most;
  const isStructuredOver = Buffer.byteLength(json) > most;
  if (!isTextOver && !isStructuredOver) return undefined;
  if (!isTextOver || (isStructuredOver && !isRepeated(json, blocks)))
    blocks.push(blockOf(JSON.stringify({ type: 'text', text: json })));
  const { kept, shown, rest } = divided(blocks, most);
  return {
    shown,
    total: bytesOf(blocks),
    rest,
    text(added) {
      const all = `[${[...kept, ...added.map((block) => JSON.stringify(block))].join(',')}]`;
      const change = hasContent ? { ...content, text: all } : contentMember(text, all);
      const changed = change === undefined ? text : edit(text, [change]);
      return isStructuredOver
        ? withoutMembers(changed, ['result'], (key) => key === 'structuredContent')
        : changed;
    },
  };
}

/** Divides the texts of blocks into those that are kept, with at most so many bytes, and the rest. */
function divided(blocks: readonly Block[], most: number): { kept: string[]; shown: number; rest: Buffer } {
  const kept: string[] = [];
  const rest: string[] = [];
  let shown = 0;
  for (const { json, content } of blocks) {
    if (content === undefined || (rest.length === 0 && content.bytes <= most - shown)) {
      kept.push(json);
      shown += content?.bytes ?? 0;
      continue;
    }
    const { path, text, uri } = content;
    const bytes = rest.length === 0 ? Buffer.from(text) : undefined;
    const end = bytes === undefined ? 0 : partEnd(bytes, 0, most - shown);
    shown += end;
    if (bytes !== undefined && end > 0) kept.push(withTextAt(json, path, bytes.toString('utf8', 0, end)));
    if (end === 0 && uri !== '') rest.push(uri);
    rest.push(bytes === undefined ? text : bytes.toString('utf8', end));
  }
  // Lone surrogates, which have no encoding in UTF-8, become replacement characters.
  return { kept, shown, rest: Buffer.from(rest.join('\n')) };
}

/** Parsed once: a result may have hundreds of thousands of blocks. */
function blockOf(json: string): Block {
  const block = membersOf(parseJson(json));
  const { type } = block;
  const isText = type === 'text';
  const holder = isText ? block : membersOf(block['resource']);
  const text = stringIn(holder['text']);
  if ((!isText && type !== 'resource') || text === undefined) return { json, content: undefined };
  const path = isText ? ['text'] : ['resource', 'text'];
  const uri = isText ? '' : textIn(holder['uri']);
  return { json, content: { path, text, bytes: Buffer.byteLength(text), uri } };
}

/**
 * Whether texts say what structured content says, as JSON: one of them all of it, or the only member of an object, or each an element
 * of that. Spaces are ignored, also in strings: comparing parsed values would take longer.
 */
function isRepeated(json: string, blocks: readonly Block[]): boolean {
  const texts = blocks.flatMap(({ content }) => (content === undefined ? [] : [withoutSpaces(content.text)]));
  const [only, ...others] = json.startsWith('{') ? members(json) : [];
  const value = only === undefined || others.length > 0 ? json : sliced(json, only[1]);
  const said = [json, value, ...(value.startsWith('"') ? [stringOf(value)] : [])].map(withoutSpaces);
  return texts.some((text) => said.includes(text)) || said.includes(`[${texts.join(',')}]`);
}

const withoutSpaces = (text: string): string => text.replaceAll(/\s+/g, '');

function withTextAt(json: string, path: readonly string[], text: string): string {
  const span = valueAt(json, path);
  return span === undefined ? json : edit(json, [{ ...span, text: JSON.stringify(text) }]);
}

const contentMember = (text: string, content: string): ReturnType<typeof insertion> => {
  const result = valueAt(text, ['result']);
  return result && insertion(text, result.start, `"content":${content}`);
};

const bytesOf = (blocks: readonly Block[]): number =>
  blocks.reduce((sum, { content }) => sum + (content?.bytes ?? 0), 0);

const sliced = (text: string, { start, end }: Span): string => text.slice(start, end);
