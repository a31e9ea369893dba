import type { Document, Node, YAMLError } from 'yaml';
import { visit } from 'yaml';
import { isFirstOnLine, misplacedLine, nextText } from './indentation.ts';
import type { YamlProblem } from './limits.ts';

interface Words {
  readonly message: string;
  readonly help?: string;
}

const KEY_AND_VALUE = 'write `key: value`, with a space after the colon';

const COLON_MISSING = { message: '`:` is missing after this key', help: KEY_AND_VALUE };
const COMMA_MISSING = { message: '`,` is missing', help: 'put a comma between the entries' };

/** Plain words for the library's error codes. */
const BY_CODE: Readonly<Record<string, Words>> = {
  ALIAS_PROPS: { message: 'an alias cannot have an anchor or a tag' },
  BAD_DIRECTIVE: { message: 'this `%` directive is not valid' },
  BAD_PROP_ORDER: { message: 'an anchor or tag stands at the wrong place' },
  BAD_SCALAR_START: { message: 'text cannot start with this character', help: 'put the text in quotes' },
  BLOCK_AS_IMPLICIT_KEY: {
    message: 'a mapping cannot stand here',
    help: 'put the value in quotes if it contains `: `, or start the mapping on the next line, indented',
  },
  BLOCK_IN_FLOW: {
    message: 'indented YAML cannot stand inside `[` `]` or `{` `}`',
    help: 'close the bracket first, or write all of it in brackets, with commas',
  },
  KEY_OVER_1024_CHARS: { message: 'a key is longer than 1,024 characters' },
  MULTILINE_IMPLICIT_KEY: {
    message: 'a key must end on its line',
    help: 'is a `:` missing on the line before, or a closing quote?',
  },
  MULTIPLE_ANCHORS: { message: 'a value can have only one anchor' },
  MULTIPLE_TAGS: { message: 'a value can have only one tag' },
  RESOURCE_EXHAUSTION: { message: 'the file is nested too deeply' },
  TAB_AS_INDENT: { message: 'a tab cannot be used for indentation', help: 'use spaces' },
};

/** Words for errors that share a code with others, by the beginning of the library's message. */
const BY_MESSAGE: readonly (readonly [beginning: RegExp, words: Words])[] = [
  [
    /^Block scalar (?:values|lines)|^Block scalars/,
    {
      message: 'wrong indentation of a text after `|` or `>`',
      help: 'indent its lines more than the key, and none less than the first of them',
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
      help: 'a text that starts with `&` or `!` must be in quotes',
    },
  ],
  [/^Unexpected (?:,|empty item)/, { message: 'a `,` too many', help: 'delete it' }],
  [
    /^Unexpected (?:scalar|.*-quoted-scalar|alias|anchor|tag|flow-\S+-start) /,
    {
      message: 'something follows the end of the value',
      help: 'delete it, or put the whole value in quotes',
    },
  ],
  [/^Missing directives-end/, { message: 'a line `---` is missing after the `%` directives' }],
];

/** The first error of a document, which has a `misplacedLine` of its own if that is what it comes to. */
export function describeErrors(document: Document, text: string): YamlProblem | undefined {
  const errors = document.errors.toSorted((a, b) => a.pos[0] - b.pos[0]);
  const [error] = errors;
  if (error === undefined) return undefined;
  return describeIndentation(error, errors, text) ?? describeError(error, document, text);
}

/** A line that begins in the wrong column: the library names it by what it cannot be there. */
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
  // The line above has a value already, and this one has been taken for more of it.
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
  const found = text.slice(start, end);
  const words = onOneLine(error, found) ?? wordsFor(error, found);
  const shown = found.slice(0, 80).split('\n', 1)[0]?.trimEnd().length || 1;
  return { start, end: start + Math.min(shown, end - start), path: [], code, ...words };
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
  };
}

/** Two mistakes of one character that the library takes for something larger. */
function onOneLine({ code }: YAMLError, found: string): Words | undefined {
  if (code === 'MULTILINE_IMPLICIT_KEY' && /^[^"'\n]*\n/.test(found)) return COLON_MISSING;
  return code === 'BLOCK_IN_FLOW' && /^[^-\n][^\n]*$/.test(found) ? COMMA_MISSING : undefined;
}

/** `found` may be part of a secret: no more than a mark of punctuation is shown of it. */
function wordsFor({ code, message }: YAMLError, found: string): Words {
  const known = BY_CODE[code] ?? BY_MESSAGE.find(([beginning]) => beginning.test(message))?.[1];
  if (known !== undefined) return known;
  if (code === 'BAD_ALIAS') return badAlias(found[0] === '&' ? '&' : '*');
  const mark = /^[^\w\s]/u.exec(found.trim())?.[0];
  return mark === undefined
    ? { message: 'not valid YAML' }
    : {
        message: `not valid YAML: unexpected \`${mark}\``,
        help: 'delete it, or put the text in quotes if it is part of one',
      };
}

function badAlias(mark: string): Words {
  return {
    message: `\`${mark}\` without a name: it stands for an ${mark === '&' ? 'anchor' : 'alias'} in YAML`,
    help: `if it is a text, put it in quotes: \`"${mark}"\``,
  };
}

/** What is not closed is reported where the text ends; the place to look at is where it was opened. */
function findOpening(document: Document, text: string, opening: string, closing: string): number | undefined {
  let found: number | undefined;
  const check = (_key: unknown, node: Node): void => {
    const [start, end] = node.range ?? [0, 0];
    if (text[start] === opening && text[end - 1] !== closing) found = start;
  };
  visit(document, { Map: check, Seq: check });
  return found;
}
