import {
  edit,
  elements,
  insertion,
  type Span,
  stringAt,
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
  /** The text in it that models read, with its place; undefined if there is none, such as in images. */
  readonly content: { readonly span: Span; readonly bytes: Buffer; readonly uri: string } | undefined;
}

/**
 * Cuts the result in the JSON text of a response; undefined if it is within the limit. Text blocks and texts of embedded resources
 * are kept in order up to the limit, and all other blocks as they are. Structured content over the limit is removed. It repeats
 * what the text says (MCP 2025-06-18, "Structured Content"), unless the text is shorter than the limit: then it becomes the last text.
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
  if (!isTextOver) blocks.push(blockOf(JSON.stringify({ type: 'text', text: json })));
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
  const rest: Buffer[] = [];
  let shown = 0;
  for (const { json, content } of blocks) {
    if (content === undefined) {
      kept.push(json);
      continue;
    }
    const { span, bytes, uri } = content;
    const end = rest.length > 0 ? 0 : partEnd(bytes, 0, most - shown);
    if (end === bytes.length && rest.length === 0) kept.push(json);
    else if (end > 0)
      kept.push(edit(json, [{ ...span, text: JSON.stringify(bytes.toString('utf8', 0, end)) }]));
    shown += end;
    if (end === bytes.length) continue;
    if (rest.length > 0) rest.push(NEW_LINE);
    if (end === 0 && uri !== '') rest.push(Buffer.from(`${uri}\n`));
    rest.push(bytes.subarray(end));
  }
  return { kept, shown, rest: Buffer.concat(rest) };
}

const NEW_LINE = Buffer.from('\n');

function blockOf(json: string): Block {
  const type = stringAt(json, ['type']);
  const path = type === 'text' ? ['text'] : type === 'resource' ? ['resource', 'text'] : undefined;
  const span = path && valueAt(json, path);
  if (span === undefined || json[span.start] !== '"') return { json, content: undefined };
  // A lone surrogate becomes a replacement character.
  const bytes = Buffer.from(stringOf(sliced(json, span)));
  return { json, content: { span, bytes, uri: stringAt(json, ['resource', 'uri']) ?? '' } };
}

const contentMember = (text: string, content: string): ReturnType<typeof insertion> => {
  const result = valueAt(text, ['result']);
  return result && insertion(text, result.start, `"content":${content}`);
};

const bytesOf = (blocks: readonly Block[]): number =>
  blocks.reduce((sum, { content }) => sum + (content?.bytes.length ?? 0), 0);

const sliced = (text: string, { start, end }: Span): string => text.slice(start, end);
