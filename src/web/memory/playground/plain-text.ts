import { Lexer, type Token, type Tokens } from 'marked';

/** The text of Markdown without its marks, a line per paragraph, item and row of a table. */
export const plainText = (markdown: string): string => linesOf(Lexer.lex(markdown)).join('\n');

const linesOf = (tokens: readonly Token[]): string[] => tokens.map(textOf).filter((text) => text !== '');

function textOf(token: Token): string {
  switch (token.type) {
    case 'space':
    case 'hr':
      return '';
    case 'list': {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the type says so
      const { items, ordered, start } = token as Tokens.List;
      return items
        .map((item, at) => `${ordered ? `${Number(start) + at}.` : '•'} ${linesOf(item.tokens).join('\n  ')}`)
        .join('\n');
    }
    case 'table': {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as above
      const { header, rows } = token as Tokens.Table;
      const line = (cells: readonly Tokens.TableCell[]): string =>
        cells.map(({ tokens }) => inline(tokens)).join(' | ');
      return [header, ...rows].map(line).join('\n');
    }
    case 'text':
      // A line break in a paragraph is a space (CommonMark 6.8).
      if (!('tokens' in token) || token.tokens === undefined)
        return String(token['text']).replaceAll('\n', ' ');
      return inline(token.tokens);
    case 'blockquote':
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as above
      return linesOf((token as Tokens.Blockquote).tokens).join('\n');
    default:
      return 'tokens' in token && token.tokens !== undefined
        ? inline(token.tokens)
        : 'text' in token
          ? String(token.text)
          : token.raw;
  }
}

const inline = (tokens: readonly Token[]): string =>
  tokens.map((token) => (token.type === 'br' ? '\n' : textOf(token))).join('');
