import { Lexer, type Token, Tokenizer, type Tokens } from 'marked';

/** A top-level element of a document: a heading, a paragraph, a fence with its content, a table, one list item. */
export interface Block {
  /** The source text, including the line breaks that follow it. */
  readonly raw: string;
  readonly heading: { readonly depth: number; readonly text: string } | undefined;
}

/** Maximum length of a heading; a longer one is treated as text. */
const HEADING = 200;

const IMAGE = /!\[([^\]]{0,400})\](?:\([^)\s]{0,400}(?:\s[^)]{0,400})?\)|\[[^\]]{0,400}\])/g;
const LINK = /\[([^\]]{0,400})\](?:\([^)\s]{0,400}(?:\s[^)]{0,400})?\)|\[[^\]]{0,400}\])/g;

/** The text of a heading, without markup and badges; for a logo alone, its description. */
function plain(text: string): string {
  const start = text.slice(0, 4 * HEADING);
  return words(start.replace(IMAGE, '')) || words(start.replace(IMAGE, '$1'));
}

function words(text: string): string {
  return text
    .replace(LINK, '$1')
    .replace(/\s*\{#[^}]{0,100}\}\s*$/, '')
    .replace(/[`*]+/g, '')
    .replace(/<\/?[A-Za-z][^<>]{0,400}>/g, '')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, HEADING);
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
  lexer.blockTokens = once as typeof lexer.blockTokens;
  return lexer.blockTokens(text, []);
}

/**
 * Splits the text into blocks, in order; the concatenation of their `raw` is the text. Line breaks must be `
 * `.
 */
export function blocksOf(text: string, longList: number): Block[] {
  const blocks: Block[] = [];
  for (const token of topLevel(text)) {
    if (token.type === 'heading') {
      const { depth, text: title } = token as Tokens.Heading;
      blocks.push({ raw: token.raw, heading: { depth, text: plain(title) } });
    } else if (token.type === 'list' && token.raw.length > longList) {
      const items = (token as Tokens.List).items.map(({ raw }) => raw);
      const isWhole = items.join('') === token.raw;
      for (const raw of isWhole ? items : [token.raw]) blocks.push({ raw, heading: undefined });
    } else {
      blocks.push({ raw: token.raw, heading: undefined });
    }
  }
  return blocks;
}
