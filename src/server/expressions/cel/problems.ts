import type { Span } from '../../kernel/expression.ts';
import { CelSyntaxError } from './errors.ts';
import { CEL_LIMITS } from './limits.ts';

interface Words {
  readonly message: string;
  readonly label?: string;
  readonly help?: string;
  readonly span?: Span;
}

/** Marks that the parser names by its own words when it misses them. */
const MARKS: Record<string, string> = { RPAREN: ')', RBRACKET: ']', RBRACE: '}', COLON: ':' };

/** Turns a failure of the parser into plain words, with a hint where the mistake is a common one. */
export function parserProblem(source: string, code: string, summary: string, range: Span): CelSyntaxError {
  if (code === 'limit_exceeded') return overLimit(source, summary, range);
  const words = whole(source, range) ?? operator(source, range) ?? byCode(source, code, summary, range);
  const { start, end } = words.span ?? range;
  return new CelSyntaxError({
    code: 'AGW0201',
    message: words.message,
    start,
    end: Math.max(end, start),
    label: words.label,
    help: words.help,
  });
}

function overLimit(source: string, summary: string, range: Span): CelSyntaxError {
  const message = summary.includes('maxDepth')
    ? `the expression nests more than ${CEL_LIMITS.depth} levels`
    : summary.includes('maxCallArguments')
      ? 'a call has too many arguments'
      : `the expression has more than ${CEL_LIMITS.nodes} parts`;
  return new CelSyntaxError({
    code: 'AGW0204',
    message,
    start: range.start,
    end: Math.min(source.length, range.end + 1),
  });
}

/** Mistakes that are about the expression as a whole. */
function whole(source: string, range: Span): Words | undefined {
  const text = source.trim();
  const start = source.indexOf(text);
  const span = { start, end: start + text.length };
  if (text === '') return { message: 'the expression is empty', span: { start: 0, end: source.length } };
  if (text.startsWith('/') && range.start === start) {
    return {
      message: 'a CEL expression cannot start with `/`',
      label: 'this is CEL, not literal text',
      help: `quote the literal path inside the expression: '"${text}"'`,
      span,
    };
  }
  // A URL parses as a name, a colon and a comment.
  if (/^[a-z][a-z0-9+.-]*:\/\/\S*$/i.test(text)) {
    return {
      message: 'a URL is not a CEL expression',
      label: 'this is CEL, not literal text',
      help: `quote it inside the expression: '"${text}"'`,
      span,
    };
  }
  return undefined;
}

/** Operators of other languages. */
function operator(source: string, range: Span): Words | undefined {
  const at = source.slice(range.start, range.end);
  switch (at) {
    case '=':
      return {
        message: 'unexpected `=`',
        label: 'assignment is not allowed here',
        help: 'to compare two values, use `==`',
      };
    case '&':
      return { message: 'unexpected single `&`', help: 'to join two conditions, use `&&`' };
    case '|':
      return { message: 'unexpected single `|`', help: 'to accept either of two conditions, use `||`' };
    case 'and':
      return { message: 'unexpected `and`', help: 'to join two conditions, use `&&`' };
    case 'or':
      return { message: 'unexpected `or`', help: 'to accept either of two conditions, use `||`' };
    case '\u201c':
    case '\u201d':
    case '\u2018':
    case '\u2019':
      return { message: `unexpected \`${at}\``, help: 'use straight quotes: "text"' };
    default:
      return undefined;
  }
}

function byCode(source: string, code: string, summary: string, range: Span): Words {
  const at = source.slice(range.start, range.end);
  const atEnd = source.slice(range.start).trim() === '';
  switch (code) {
    case 'expected_token':
      return expected(source, summary, range, at, atEnd);
    case 'unterminated_string':
    case 'unterminated_triple_quoted_string':
      return {
        message: `missing ${at.slice(0, 1)} at the end of a string`,
        label: 'the string starts here',
        span: { start: range.start, end: range.start + 1 },
      };
    case 'newline_in_string':
      return {
        message: 'a string in single quotes cannot contain a line break',
        help: 'write `\\n`, or use three quotes',
      };
    case 'reserved_identifier':
      return { message: `\`${at}\` is a reserved word` };
    case 'invalid_macro_argument':
      return {
        message: `expected a new variable name, found \`${at}\``,
        help: 'name the item first, as in `list.map(x, x + 1)`',
      };
    default:
      break;
  }
  if (/escape|surrogate/.test(code)) {
    return {
      message: `\`${at}\` is not a valid escape in a string`,
      help: 'write a backslash as `\\\\`, or put `r` before the string: r"\\d+"',
    };
  }
  if (/^invalid_(number|integer|hex_integer|exponent)/.test(code))
    return { message: 'this is not a valid number' };
  if (atEnd) return tooShort(source);
  return unexpected(source, range, at);
}

function expected(source: string, summary: string, range: Span, at: string, atEnd: boolean): Words {
  const token = /^Expected (\w+)/.exec(summary)?.[1] ?? '';
  if (token === 'IDENTIFIER')
    return { message: 'a name must follow the `.`', ...(atEnd ? { span: endOf(source) } : {}) };
  const mark = MARKS[token] ?? token;
  if (atEnd) return { message: `missing \`${mark}\``, label: `add \`${mark}\` here`, span: endOf(source) };
  const instead = mark === ':' ? ', because each `?` needs a `:`, and each key of a map' : '';
  return { message: `unexpected \`${at}\`: \`${mark}\` is missing before it${instead}`, span: range };
}

function tooShort(source: string): Words {
  return { message: 'the expression ends too early', label: 'a value is missing here', span: endOf(source) };
}

function unexpected(source: string, range: Span, at: string): Words {
  const before = source.slice(0, range.start).trimEnd().slice(-1);
  if (/^[\w"']/.test(at) && /[\w"')\]]/.test(before)) {
    return {
      message: `unexpected \`${at}\``,
      help: 'an operator is missing before it: `&&` and `||` join conditions, `+` joins strings',
    };
  }
  return { message: `unexpected \`${at}\`` };
}

function endOf(source: string): Span {
  const end = source.trimEnd().length;
  return { start: end, end };
}
