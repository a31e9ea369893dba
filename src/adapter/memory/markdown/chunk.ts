import { Lexer, type Token, Tokenizer, type Tokens } from 'marked';
import { splitBlock } from './split-block.ts';

/** A top-level element of a document: a heading, a paragraph, a fence with its content, a table, one list item. */
interface Block {
  /** The source text, including the line breaks that follow it. */
  readonly raw: string;
  readonly heading: Heading | undefined;
}

interface Heading {
  readonly depth: number;
  readonly text: string;
  /** What links to it name, if it says so: `## Set up {#setup}`. */
  readonly id: string | undefined;
}

/** Maximum length of a heading; a longer one is treated as text. */
const HEADING = 200;

const IMAGE = /!\[([^\]]{0,400})\](?:\([^)\s]{0,400}(?:\s[^)]{0,400})?\)|\[[^\]]{0,400}\])/g;
const LINK = /\[([^\]]{0,400})\](?:\([^)\s]{0,400}(?:\s[^)]{0,400})?\)|\[[^\]]{0,400}\])/g;

/** Characters at the end of a heading in which it may name its id. */
const OWN_ID = 200;
const EXPLICIT_ID = /\{#([^\s{}]{1,100})\}\s*$/;

/** The text of a heading, without markup and badges; for a logo alone, its description. */
function plain(text: string): string {
  const start = text.slice(0, 4 * HEADING);
  return words(start.replace(IMAGE, '')) || words(start.replace(IMAGE, '$1'));
}

/** An escaped character, code, a tag, a character reference, or marks of emphasis (CommonMark §2.4, §2.5, §6). */
const INLINE =
  /\\([!-/:-@[-`{-~])|`([^`]{0,400})`|<\/?[A-Za-z][^<>]{0,400}>|&(#\d{1,7}|#x[\da-f]{1,6}|amp|lt|gt|quot|apos|nbsp);|[`*]+/gi;

function words(text: string): string {
  return text
    .replace(LINK, '$1')
    .replace(/\{#[^}]{0,100}\}\s*$/, '')
    .replace(
      INLINE,
      (all, escaped?: string, code?: string, reference?: string) =>
        escaped ?? code ?? (reference === undefined ? '' : (characterOf(reference.toLowerCase()) ?? all)),
    )
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, HEADING);
}

const REFERENCES: ReadonlyMap<string, string> = new Map([
  ['amp', '&'],
  ['lt', '<'],
  ['gt', '>'],
  ['quot', '"'],
  ['apos', "'"],
  ['nbsp', ' '],
]);

/** The character of a reference, such as `amp` or `#38`; undefined for a number that is none. */
function characterOf(reference: string): string | undefined {
  if (!reference.startsWith('#')) return REFERENCES.get(reference);
  const code = Number(reference.startsWith('#x') ? `0${reference.slice(1)}` : reference.slice(1));
  return code > 0 && code <= 0x10_ff_ff ? String.fromCodePoint(code) : undefined;
}

/**
 * Link definitions are treated as paragraphs, because the lexer's search for their titles is quadratic: 10 s for 250 kB
 * of them.
 */
class PlainTokenizer extends Tokenizer {
  override def(): undefined {
    return undefined;
  }
}

/**
 * Parses the top level only. Content of quotes and list items is never parsed, which keeps a document with 5,000 nested
 * quotes (stack overflow in the lexer) or 1,000 nested lists (12 s) at milliseconds.
 */
function topLevel(text: string): Token[] {
  const lexer = new Lexer({ tokenizer: new PlainTokenizer() });
  const all = lexer.blockTokens.bind(lexer) as (text: string, tokens: Token[], clipped?: boolean) => Token[];
  let isInside = false;
  const once = (source: string, tokens: Token[] = [], clipped?: boolean): Token[] => {
    if (isInside) return tokens;
    isInside = true;
    try {
      return all(source, tokens, clipped);
    } finally {
      isInside = false;
    }
  };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- returns `tokens`, as it does
  lexer.blockTokens = once as typeof lexer.blockTokens;
  return lexer.blockTokens(text, []);
}

/**
 * Splits the text into blocks, in order; the concatenation of their `raw` is the text. Line breaks must be line feeds.
 */
function blocksOf(text: string, longList: number): Block[] {
  const blocks: Block[] = [];
  for (const token of topLevel(text)) {
    if (token.type === 'heading') {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the type says so
      const { depth, text: title } = token as Tokens.Heading;
      const id = EXPLICIT_ID.exec(title.slice(-OWN_ID))?.[1];
      blocks.push({ raw: token.raw, heading: { depth, text: plain(title), id } });
    } else if (token.type === 'list' && token.raw.length > longList) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as above
      const items = (token as Tokens.List).items.map(({ raw }) => raw);
      const isWhole = items.join('') === token.raw;
      for (const raw of isWhole ? items : [token.raw]) blocks.push({ raw, heading: undefined });
    } else {
      blocks.push({ raw: token.raw, heading: undefined });
    }
  }
  return blocks;
}

/** Where a chunk, or a section in it, begins. */
export interface Section {
  /** Its headings, outermost first, without the document's title if that is the first heading. */
  readonly headings: readonly string[];
  /** The id of its innermost heading on a site, as GitHub and most generators make it. Undefined without headings. */
  readonly anchor?: string | undefined;
  /** Of the text that is split, from 0. */
  readonly line: number;
}

/** A part of a document that is embedded, found and displayed by itself. */
export interface Chunk extends Section {
  readonly text: string;
  /** Small sections that follow the first one. */
  readonly sections?: readonly Section[];
}

/** Characters per chunk, if the structure of the document permits. */
const TARGET = 1_200;
/** A section shorter than this shares a chunk with the next one. */
const SMALL = 200;
/** Maximum length of a block that is kept whole: half a table or half a program is useless. */
const WHOLE = 8 * 1024;

interface Open {
  text: string;
  line: number;
  headings: readonly string[];
  anchor: string | undefined;
  sections: Section[];
  /** Where the trailing headings of the text begin: the offset, and the line. */
  headingsFrom: number | undefined;
  headingsLine: number;
}

/** Groups blocks into chunks: a new one begins at a heading and when the target length is reached. */
class Packer {
  readonly chunks: Chunk[] = [];
  readonly #path: { depth: number; text: string; anchor: string }[] = [];
  readonly #anchors = new Map<string, number>();
  #open: Open | undefined;
  /** Of the block that is added. */
  #line = 0;

  add(block: Block): void {
    this.#add(block);
    this.#line += linesIn(block.raw);
  }

  #add(block: Block): void {
    if (block.heading !== undefined) this.#heading(block.raw, block.heading);
    else if (block.raw.length > WHOLE) this.#long(block.raw);
    else this.#block(block.raw);
  }

  end(): void {
    if (this.#open !== undefined && this.#open.text.trim() !== '') {
      const { text, line, headings, anchor, sections } = this.#open;
      const trimmed = text.replace(EMPTY_LINES, '');
      this.chunks.push({
        text: trimmed.trimEnd(),
        headings,
        ...(anchor !== undefined && { anchor }),
        line: line + linesIn(text) - linesIn(trimmed),
        ...(sections.length > 0 && { sections }),
      });
    }
    this.#open = undefined;
  }

  /** Begins a chunk, of which the headings are those of the current section. */
  #begin(text: string, line: number, headingsFrom: 0 | undefined): void {
    this.#open = {
      ...{ text, line, headingsFrom, headingsLine: line, sections: [] },
      ...{ headings: this.#headings, anchor: this.#anchor },
    };
  }

  get #headings(): string[] {
    return this.#path.map(({ text }) => text).filter((text) => text !== '');
  }

  get #anchor(): string | undefined {
    return this.#path.at(-1)?.anchor;
  }

  /** The second heading of the same text has `-1` at its end, and so on. */
  #anchorOf({ text, id }: Heading): string {
    if (id !== undefined) return id;
    const slug = text
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M} _-]/gu, '')
      .replaceAll(' ', '-');
    const count = this.#anchors.get(slug) ?? 0;
    this.#anchors.set(slug, count + 1);
    return count === 0 ? slug : `${slug}-${count}`;
  }

  #heading(raw: string, heading: Heading): void {
    while ((this.#path.at(-1)?.depth ?? 0) >= heading.depth) this.#path.pop();
    const { depth, text } = heading;
    this.#path.push({ depth, text, anchor: this.#anchorOf(heading) });
    const open = this.#open;
    if (open !== undefined && open.headingsFrom === undefined && open.text.trim().length >= SMALL) this.end();
    if (this.#open !== undefined && this.#open.text.length + raw.length > TARGET) this.end();
    if (this.#open === undefined || this.#open.text.trim() === '') {
      // The blank line after a long block may have begun a chunk already.
      this.#begin(raw, this.#line, 0);
    } else {
      const current = this.#open;
      const section = { headings: this.#headings, anchor: this.#anchor, line: this.#line };
      if (current.headingsFrom === 0) {
        current.headings = section.headings;
        current.anchor = section.anchor;
      } else if (current.headingsFrom === undefined) {
        current.headingsFrom = current.text.length;
        current.headingsLine = this.#line;
        current.sections.push(section);
      } else current.sections.splice(-1, 1, { ...section, line: current.headingsLine });
      current.text += raw;
    }
  }

  #block(raw: string): void {
    const open = this.#open;
    if (open !== undefined && open.text.length + raw.length > TARGET) this.#breakBefore(open);
    if (this.#open === undefined) this.#begin('', this.#line, undefined);
    const current = this.#open;
    if (current === undefined) return;
    current.text += raw;
    if (raw.trim() !== '') current.headingsFrom = undefined;
  }

  /** Ends the chunk; trailing headings move to the next one. */
  #breakBefore(open: Open): void {
    const from = open.headingsFrom;
    if (from === 0) return;
    if (from === undefined) {
      this.end();
      return;
    }
    const kept = open.text.slice(from);
    open.text = open.text.slice(0, from);
    // That of the headings.
    open.sections.pop();
    this.end();
    this.#begin(kept, open.headingsLine, 0);
  }

  #long(raw: string): void {
    if (this.#open !== undefined) this.#breakBefore(this.#open);
    const start = this.#line;
    for (const { text, line } of splitBlock(raw, WHOLE)) {
      this.#line = start + line;
      this.#block(text);
      this.end();
    }
    this.#line = start;
  }
}

/** At the beginning of a chunk; the first line keeps its indentation. */
const EMPTY_LINES = /^(?:[ \t]*\n)+/;

function linesIn(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count += 1;
  return count;
}

/**
 * Splits Markdown into chunks along its structure: about 1,200 characters each, blocks up to 8 KiB whole, fences never
 * broken, no chunk of headings alone unless nothing follows them. Keeps all text, in order.
 *
 * @param text with line feeds between its lines, without front matter
 */
export function chunksOf(text: string): Chunk[] {
  const packer = new Packer();
  for (const block of blocksOf(text, TARGET)) packer.add(block);
  packer.end();
  return packer.chunks;
}
