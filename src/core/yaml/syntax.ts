import { Composer, type CST, type Document, Lexer, Parser } from 'yaml';
import { YAML_LIMITS, type YamlProblem } from './limits.ts';
import { describeErrors } from './syntax-error.ts';

/** The tree of one document, or the problem that prevented it. */
export type SyntaxResult =
  | { readonly document: Pick<Document, 'contents' | 'toJS'> | undefined }
  | { readonly problem: YamlProblem };

/**
 * Parses `text` as one YAML 1.2 (core) document. Only the first syntax error is reported, because later ones are often
 * follow-ups. `YAML_LIMITS` and `lexemes`, the most tokens, bound time and memory for any input.
 */
export function parseYamlSyntax(text: string, lexemes: number): SyntaxResult {
  const unreadable = findUnreadable(text);
  if (unreadable !== undefined) return { problem: unreadable };
  const tokens = readTokens(text, lexemes);
  if (!Array.isArray(tokens)) return { problem: tokens };
  // Our own walk finds duplicate keys: the library compares every key with every other one.
  const composer = new Composer({
    version: '1.2',
    schema: 'core',
    resolveKnownTags: false,
    uniqueKeys: false,
    keepSourceTokens: true,
  });
  const [document] = composer.compose(tokens, true, text.length);
  const problem = document && describeErrors(document, text);
  if (problem !== undefined) return { problem };
  return { document };
}

function problemAt(
  start: number,
  end: number,
  rest: Pick<YamlProblem, 'code' | 'message' | 'label' | 'help'>,
): YamlProblem {
  return { start, end, path: [], ...rest };
}

/** Finds content that no YAML file may have: too much text, UTF-16, control characters. */
function findUnreadable(text: string): YamlProblem | undefined {
  if (text.length > YAML_LIMITS.bytes || Buffer.byteLength(text) > YAML_LIMITS.bytes) {
    return problemAt(0, 0, { code: 'AGW0005', message: 'the file is larger than 5 MiB' });
  }
  // UTF-16 read as UTF-8: its byte order mark becomes two replacement characters, ASCII text gets a NUL per letter.
  if (/^\uFFFD\uFFFD|^\uFEFF?[^\0]?\0/.test(text)) {
    return problemAt(0, 0, {
      code: 'AGW0001',
      message: 'the file is not UTF-8 text',
      help: 'it looks like UTF-16: save it as UTF-8',
    });
  }
  const control = /(?![\t\r\n\u0085])\p{Cc}|\r(?!\n)/u.exec(text);
  if (control === null) return undefined;
  const code = (control[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
  return problemAt(control.index, control.index + 1, {
    code: 'AGW0001',
    message: `the control character U+${code} is not allowed in YAML`,
    help: 'delete it, or write it as an escape in double quotes',
  });
}

/** Runs the lexer and parser step by step, so that a limit or the first error stops them early. */
function readTokens(text: string, most: number): CST.Token[] | YamlProblem {
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  let lexemes = 0;
  let previous = '';
  for (const lexeme of new Lexer().lex(text)) {
    if (++lexemes > most) {
      return problemAt(parser.offset, parser.offset, {
        code: 'AGW0005',
        message: 'the file contains too many values',
        help: `at most ${most.toLocaleString('en-US')} tokens of YAML are read, which are about ${Math.round(most / 7_000)},000 lines`,
      });
    }
    const badQuote = previous === CST_SCALAR ? undefined : checkQuoted(lexeme, parser.offset);
    if (badQuote !== undefined) return badQuote;
    for (const token of parser.next(lexeme)) tokens.push(token);
    // The stack contains the document, its open collections, and at most one scalar.
    if (parser.stack.length > YAML_LIMITS.depth + 2) return tooDeep(parser.offset);
    if (tokens.at(-1)?.type === 'error') break;
    previous = lexeme;
  }
  tokens.push(...parser.end());
  const second = tokens.filter((token) => token.type === 'document')[1];
  if (second === undefined) return tokens;
  return problemAt(second.offset, second.offset + 3, {
    code: 'AGW0001',
    message: 'the file contains more than one YAML document',
    help: 'delete the `---` line, or split the file',
  });
}

/** The lexeme before a plain or block scalar, whose text may begin with a quote that is not a delimiter. */
const CST_SCALAR = '\u001f';
const ESCAPE = /\\(?:x[\dA-Fa-f]{2}|u[\dA-Fa-f]{4}|U000[\dA-Fa-f]{5}|U0010[\dA-Fa-f]{4}|[^xuU])/y;

/**
 * Checks a quoted text before the library parses it: the library would report the end of an unclosed quote instead of
 * its start, and each of a million invalid escapes.
 */
function checkQuoted(lexeme: string, offset: number): YamlProblem | undefined {
  const quote = lexeme[0];
  if (quote !== '"' && quote !== "'") return undefined;
  if (!isClosed(lexeme, quote)) {
    return problemAt(offset, offset + 1, {
      code: 'AGW0001',
      message: `this \`${quote}\` is not closed`,
      help: `put another \`${quote}\` at the end of the text`,
    });
  }
  if (quote === "'") return undefined;
  for (let at = lexeme.indexOf('\\'); at !== -1; at = lexeme.indexOf('\\', ESCAPE.lastIndex)) {
    ESCAPE.lastIndex = at;
    if (ESCAPE.test(lexeme) && '0abefnrtvN_LPxuU "/\\\t\r\n'.includes(lexeme[at + 1] ?? '')) continue;
    return problemAt(offset + at, offset + at + 2, {
      code: 'AGW0001',
      message: 'unknown escape sequence in double quotes',
      help: 'write `\\\\` for a backslash, or use single quotes',
    });
  }
  return undefined;
}

/** Whether the last character closes the text, which a `\\"` or the second half of a `''` does not. */
function isClosed(lexeme: string, quote: string): boolean {
  const escaping = quote === '"' ? '\\' : quote;
  let at = lexeme.length - 1;
  if (at < 1 || lexeme[at] !== quote) return false;
  let run = 0;
  while (--at > 0 && lexeme[at] === escaping) run++;
  return run % 2 === 0;
}

/** The problem of exceeding the nesting limit at `offset`. */
export function tooDeep(offset: number): YamlProblem {
  const message = `the file is nested deeper than ${YAML_LIMITS.depth} levels`;
  return problemAt(offset, offset + 1, { code: 'AGW0003', message });
}
