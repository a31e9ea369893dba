import { type Document, type Node, visit, type YAMLError } from 'yaml';
import { YAML_LIMITS, type YamlProblem } from './limits.ts';
import { LineIndex } from './lines.ts';

interface Message {
  readonly message: string;
  readonly help?: string;
}

const KEY_AND_VALUE = 'write `key: value`, with a space after the colon';

const COLON_MISSING = { message: '`:` is missing after this key', help: KEY_AND_VALUE };
const COMMA_MISSING = { message: '`,` is missing', help: 'put a comma between the entries' };

/** Messages for the library's error codes. */
const BY_CODE: Readonly<Record<string, Message>> = {
  ALIAS_PROPS: { message: 'an alias cannot have an anchor or a tag' },
  BAD_DIRECTIVE: { message: 'this `%` directive is not valid' },
  BAD_PROP_ORDER: { message: 'an anchor or tag is in the wrong place' },
  BAD_SCALAR_START: { message: 'text cannot start with this character', help: 'put the text in quotes' },
  BLOCK_AS_IMPLICIT_KEY: {
    message: 'a mapping is not allowed here',
    help: 'put the value in quotes if it contains `: `, or start the mapping on the next line, indented',
  },
  BLOCK_IN_FLOW: {
    message: 'indented YAML is not allowed inside `[` `]` or `{` `}`',
    help: 'close the bracket first, or write all of it in brackets, with commas',
  },
  KEY_OVER_1024_CHARS: { message: 'a key is longer than 1,024 characters' },
  MULTILINE_IMPLICIT_KEY: {
    message: 'a key must end on the line where it starts',
    help: 'is a `:` missing on the line before, or a closing quote?',
  },
  MULTIPLE_ANCHORS: { message: 'a value can have only one anchor' },
  MULTIPLE_TAGS: { message: 'a value can have only one tag' },
  RESOURCE_EXHAUSTION: { message: 'the file is nested too deeply' },
  TAB_AS_INDENT: { message: 'a tab cannot be used for indentation', help: 'use spaces' },
};

/** Messages for errors that share a code, by the beginning of the library's message. */
const BY_MESSAGE: readonly (readonly [beginning: RegExp, words: Message])[] = [
  [
    /^Block scalar (?:values|lines)|^Block scalars/,
    {
      message: 'wrong indentation of a text after `|` or `>`',
      help: 'indent each line more than the key, and none less than the first line',
    },
  ],
  [
    /^Block scalar header|^Not a YAML token/,
    {
      message: 'the text of `|` or `>` cannot begin on the same line',
      help: 'begin it on the next line, indented; or put it in quotes, without `|` or `>`',
    },
  ],
  [
    /^Unexpected block-seq-ind on same line/,
    {
      message: 'a list cannot begin on the line of its key',
      help: 'begin it on the next line, with `- ` before each entry',
    },
  ],
  [/^Implicit map keys need to be followed/, COLON_MISSING],
  [/^Missing , or : /, COMMA_MISSING],
  [/^Missing , /, COMMA_MISSING],
  [/^Missing space after :/, { message: 'a space is missing after `:`', help: KEY_AND_VALUE }],
  [/^Missing : /, { message: '`:` is missing', help: KEY_AND_VALUE }],
  [/^Comments must be/, { message: 'a space is missing', help: 'put a space before `#`' }],
  [
    /^Tags and anchors must be separated/,
    {
      message: 'a space is missing after an anchor or tag',
      help: 'a string that starts with `&` or `!` must be in quotes',
    },
  ],
  [/^Unexpected (?:,|empty item)/, { message: 'unexpected `,`', help: 'delete it' }],
  [
    /^Unexpected (?:scalar|.*-quoted-scalar|alias|anchor|tag|flow-\S+-start) /,
    {
      message: 'unexpected text after the end of the value',
      help: 'delete it, or put the whole value in quotes',
    },
  ],
  [/^Missing directives-end/, { message: 'the line `---` is missing after the `%` directives' }],
];

/** The first error of a document, as a misplaced line if it is caused by one. */
export function describeErrors(document: Document, text: string): YamlProblem | undefined {
  const errors = document.errors.toSorted((a, b) => a.pos[0] - b.pos[0]);
  const [error] = errors;
  if (error === undefined) return undefined;
  return describeIndentation(error, errors, text) ?? describeError(error, document, text);
}

/** A line in the wrong column: the library reports what it found instead of the indentation. */
function describeIndentation(
  { code, message, pos: [start] }: YAMLError,
  errors: readonly YAMLError[],
  text: string,
): YamlProblem | undefined {
  if (message.startsWith('Sequence item without -'))
    return misplacedLine(text, start, 'this line does not belong to the list entry above it');
  if (/^All (?:mapping|sequence) items|^A block sequence may not/.test(message))
    return misplacedLine(text, start);
  if (code === 'UNEXPECTED_TOKEN' && /^Unexpected \S+ (?:at node end|token)/.test(message)) {
    const at = nextText(text, start);
    return /[\w"'-]/.test(text[at] ?? '') && isFirstOnLine(text, at) ? misplacedLine(text, at) : undefined;
  }
  // The line above already has a value, and this line was parsed as its continuation.
  const end = text.indexOf('\n', start);
  const isContinued = errors.some((each) => each.code === 'MULTILINE_IMPLICIT_KEY' && each.pos[0] === start);
  if (code === 'BLOCK_AS_IMPLICIT_KEY' && isContinued && end !== -1) return misplacedLine(text, end);
  return undefined;
}

function describeError(error: YAMLError, document: Document, text: string): YamlProblem {
  const [start, end] = error.pos;
  const code = error.code === 'TAG_RESOLVE_FAILED' ? 'AGW0003' : 'AGW0001';
  const closing = /end with (?:a )?([\]}])/.exec(error.message)?.[1];
  if (closing !== undefined) return describeBracket(start, closing, document, text);
  const quoted = stringBefore(error, text);
  if (quoted !== undefined) return quoted;
  const reference = bracedReference(start, text);
  if (reference !== undefined) return reference;
  const found = text.slice(start, end);
  const described = singleCharacterMistake(error, found) ?? messageFor(error, found);
  const shown = found.slice(0, 80).split('\n', 1)[0]?.trimEnd().length || 1;
  return { start, end: start + Math.min(shown, end - start), path: [], code, ...described };
}

/** In `["a, "b"]`, the comma is missing where the first text ends, but the quote that does not close it is the mistake. */
function stringBefore({ message, pos: [start] }: YAMLError, text: string): YamlProblem | undefined {
  const quote = text[start - 1];
  if (!/^Missing , /.test(message) || (quote !== '"' && quote !== "'")) return undefined;
  const opening = text.lastIndexOf(quote, start - 2);
  if (opening === -1 || text[opening - 1] === '\\') return undefined;
  return {
    ...{
      code: 'AGW0001',
      start: opening,
      end: start,
      path: [],
      message: 'text follows the end of this string',
    },
    help: `close it with \`${quote}\` where it should end, or put a comma after it`,
  };
}

/** `${NAME}` without quotes in a flow collection, where its `{` begins a mapping. */
function bracedReference(start: number, text: string): YamlProblem | undefined {
  const dollar = text[start] === '{' ? start - 1 : start;
  const [written] = /^\$\{[^\n}]*\}/.exec(text.slice(dollar, dollar + YAML_LIMITS.columns)) ?? [];
  if (written === undefined || dollar === start) return undefined;
  return {
    code: 'AGW0001',
    start: dollar,
    end: dollar + written.length,
    path: [],
    message: 'inside `{ }` or `[ ]`, the `{` of a variable begins a mapping',
    help: `write \`$NAME\` for a number, \`true\` or \`false\`, and \`"\${NAME}"\` for a string`,
  };
}

function describeBracket(start: number, closing: string, document: Document, text: string): YamlProblem {
  const opening = closing === ']' ? '[' : '{';
  const found = nextText(text, start);
  if (text[found] === closing) {
    return {
      ...{ code: 'AGW0001', start: found, end: found + 1, path: [], message: 'wrong indentation' },
      help: `indent the \`${closing}\` more than the key of its \`${opening}\``,
    };
  }
  const open = findOpening(document, text, opening, closing) ?? start;
  return {
    code: 'AGW0001',
    start: open,
    end: open + 1,
    path: [],
    message: `this \`${opening}\` is not closed`,
    help: `put a \`${closing}\` after its last entry${isInComment(text, open, closing) ? '; the one after ` #` is part of a comment, unless the text from `#` on is in quotes' : ''}`,
  };
}

/** Whether the line of an opening bracket has a closing one after a `#` that begins a comment. */
function isInComment(text: string, open: number, closing: string): boolean {
  const line = text.slice(open, open + YAML_LIMITS.columns).split('\n', 1)[0] ?? '';
  const comment = line.search(/\s#/);
  return comment !== -1 && line.includes(closing, comment);
}

/** Two single-character mistakes that the library reports as something larger. */
function singleCharacterMistake({ code }: YAMLError, found: string): Message | undefined {
  if (code === 'MULTILINE_IMPLICIT_KEY' && /^[^"'\n]*\n/.test(found)) return COLON_MISSING;
  return code === 'BLOCK_IN_FLOW' && /^[^-\n][^\n]*$/.test(found) ? COMMA_MISSING : undefined;
}

/** `found` may be part of a secret, so at most one punctuation mark of it is shown. */
function messageFor({ code, message }: YAMLError, found: string): Message {
  const known = BY_CODE[code] ?? BY_MESSAGE.find(([beginning]) => beginning.test(message))?.[1];
  if (known !== undefined) return known;
  if (code === 'BAD_ALIAS') return badAlias(found[0] === '&' ? '&' : '*');
  const mark = /^[^\w\s]/u.exec(found.trim())?.[0];
  return mark === undefined
    ? { message: 'not valid YAML' }
    : {
        message: `not valid YAML: unexpected \`${mark}\``,
        help: 'delete it, or put it in quotes if it is part of a string',
      };
}

function badAlias(mark: string): Message {
  return {
    message: `\`${mark}\` without a name: in YAML it marks an ${mark === '&' ? 'anchor' : 'alias'}`,
    help: `if it is a string, put it in quotes: \`"${mark}"\``,
  };
}

/** An unclosed bracket is reported at the end of the text; this finds where it was opened. */
function findOpening(document: Document, text: string, opening: string, closing: string): number | undefined {
  let found: number | undefined;
  const check = (_key: unknown, node: Node): void => {
    const [start, end] = node.range ?? [0, 0];
    if (text[start] === opening && text[end - 1] !== closing) found = start;
  };
  visit(document, { Map: check, Seq: check });
  return found;
}

/** A column where a line above has a key or a dash, which the next line may continue. */
interface Level {
  readonly column: number;
  readonly line: number;
  readonly isDash: boolean;
}

const NO_PLACE = {
  entry: 'a list follows a key that has no other value',
  key: 'indent all keys of one mapping to the same column',
} as const;

/** Where the text at or after `offset` begins, after blank lines and comments. */
function nextText(text: string, offset: number): number {
  const blank = /(?:\s|#[^\n]*)*/y;
  blank.lastIndex = offset;
  return blank.test(text) ? blank.lastIndex : offset;
}

/** Whether only spaces precede `offset` on its line. */
function isFirstOnLine(text: string, offset: number): boolean {
  return text.slice(lineStart(text, offset), offset).trim() === '';
}

/**
 * Describes a line whose column matches no level of the lines above. `offset` is at the line or in the spaces before
 * it. Suggests valid columns by numbers only, because a text that is not YAML may contain secrets anywhere.
 */
function misplacedLine(text: string, offset: number, message = 'wrong indentation'): YamlProblem {
  const at = nextText(text, offset);
  const begin = lineStart(text, at);
  const column = at - begin;
  const isDash = /-(?:\s|$)/y.test(text.slice(at, at + 2));
  const levels = levelsAbove(text, begin).filter(
    (level) => level.isDash === isDash && level.column !== column,
  );
  const deeper = levels.filter((level) => level.column > column).at(-1);
  const outer = levels.find((level) => level.column < column);
  const places = [deeper, outer].filter((level) => level !== undefined);
  return {
    code: 'AGW0001',
    message,
    start: at,
    end: at + (/[\w-]+/y.exec(text.slice(at, at + 80))?.[0].length ?? 1),
    path: [],
    label: `indented by ${spaces(column)}`,
    help:
      places.length === 0
        ? NO_PLACE[isDash ? 'entry' : 'key']
        : `indent it like ${places.map(inWords).join(', or like ')}`,
  };
}

function lineStart(text: string, offset: number): number {
  return offset === 0 ? 0 : text.lastIndexOf('\n', offset - 1) + 1;
}

function indentAt(text: string, start: number): number {
  let at = start;
  while (text[at] === ' ') at++;
  return at - start;
}

function inWords({ column, line }: Level): string {
  return `line ${line} (${spaces(column)})`;
}

function spaces(count: number): string {
  return count === 1 ? '1 space' : `${count} spaces`;
}

/** The levels that are open above the line at `begin`: from the deepest level of the nearest line outwards. */
function levelsAbove(text: string, begin: number): Level[] {
  let levels: Level[] = [];
  let lowest = Number.POSITIVE_INFINITY;
  let { line } = new LineIndex(text).position(begin);
  for (let end = begin - 1; end >= 0 && lowest > 0; ) {
    const start = lineStart(text, end);
    const stop = end;
    end = start - 1;
    line -= 1;
    // A line that is indented as deep as the lines below it, or deeper, contributes no level.
    const indent = indentAt(text, start);
    if (indent >= lowest || start + indent >= stop) continue;
    const written = text.slice(start, Math.min(stop, start + YAML_LIMITS.columns)).trimEnd();
    const tail = text.slice(Math.max(start, stop - YAML_LIMITS.columns), stop).trimEnd();
    const found = levelsOf(written, line);
    const first = found.at(-1);
    if (first === undefined) continue;
    // Lines below `|` or `>` are text, whatever their columns.
    if (/[:-] +[|>][-+\d]*(?: +#.*)?$/.test(tail)) {
      levels = levels.filter(({ column }) => column <= (found[0]?.column ?? 0));
    }
    levels.push(...found.filter(({ column }) => column < lowest));
    lowest = Math.min(lowest, first.column);
  }
  return levels;
}

/** The columns of a line's dashes and of the text after them, from right to left; none for a blank line or comment. */
function levelsOf(written: string, line: number): Level[] {
  const [lead = '', indent = '', dashes = ''] = /^( *)((?:-(?: +|$))*)/.exec(written) ?? [];
  const rest = written.slice(lead.length);
  const found: Level[] = [];
  let column = indent.length;
  for (const [dash] of dashes.matchAll(/- */g)) {
    found.unshift({ column, line, isDash: true });
    column += dash.length;
  }
  if (rest !== '' && !rest.startsWith('#')) found.unshift({ column, line, isDash: false });
  return found;
}
