/**
 * A problem with its location in a file that a person wrote. Every check of a configuration reports a list of these,
 * and every front end (start-up, `config validate`, admin API, web pages) prints the same list.
 */

/** `line` and `column` count from 1 and `offset` from 0; columns and offsets are UTF-16 units, as editors count. */
export interface Position {
  readonly line: number;
  readonly column: number;
  readonly offset: number;
}

export interface Range {
  readonly start: Position;
  readonly end: Position;
}

/** Keys and indexes from the root of the document, as in `['gateways', 'default', 'routes', 0]`. */
export type Path = readonly (string | number)[];

/** A `note` explains what is valid and often meant: only validation shows it, and `--strict` allows it. */
export type Severity = 'error' | 'warning' | 'note';

/** A path as people write it: `gateways.default.routes[0]`. */
export function pathText(path: Path): string {
  return path
    .map((each) => (typeof each === 'number' ? `[${each}]` : `.${each}`))
    .join('')
    .replace(/^\./, '');
}

/**
 * One problem. `message` says what is wrong, in lower case and without a full stop; `label` is printed next to the
 * caret; `help` says how to fix it; `notes` give background.
 */
export interface Diagnostic {
  readonly severity: Severity;
  readonly code: DiagnosticCode;
  readonly message: string;
  readonly file: string;
  readonly path: Path;
  readonly range: Range;
  readonly label?: string;
  readonly help?: string;
  readonly notes?: readonly string[];
  /**
   * The notes quote a file that the configuration names: shown to the person who runs the command, but not by the admin
   * server.
   */
  readonly notesQuoteFile?: true;
  readonly fix?: Fix;
}

/** Edits of the text that remove a problem. They never repeat a value of the file, which may be a secret. */
export interface Fix {
  /** What the edits do, in a few words. */
  readonly title: string;
  /** In source order, without overlaps. */
  readonly edits: readonly Edit[];
}

export interface Edit {
  readonly range: Range;
  /** The text that replaces the range. */
  readonly text: string;
}

/** Sorts by position and drops duplicates: a list that is shared by several routes is checked once for each of them. */
export function inOrder(diagnostics: readonly Diagnostic[]): Diagnostic[] {
  const seen = new Set<string>();
  return diagnostics
    .filter(({ code, range, message }) => {
      const key = `${code} ${range.start.offset} ${message}`;
      return !seen.has(key) && seen.add(key);
    })
    .sort((a, b) => a.range.start.offset - b.range.start.offset);
}

/** Every code that `agctl config validate` and `agctl verify` can print, with one line of documentation. Codes are never reused. */
export const DIAGNOSTIC_CODES = {
  AGW0001: 'The file is not valid YAML.',
  AGW0002: 'A mapping contains the same key twice.',
  AGW0003: 'An alias, anchor, tag or nesting depth exceeds what a configuration may use.',
  AGW0004: 'An environment variable in the file is not defined and has no fallback.',
  AGW0005: 'The file could not be read, or is too large.',
  AGW0006: 'The file is of another program.',
  AGW0101: 'A key is unknown at this position.',
  AGW0102: 'A value has the wrong type.',
  AGW0103: 'A required key is missing.',
  AGW0104: 'A value is not one of the allowed ones, or out of range.',
  AGW0105: 'Keys exclude each other, a key needs another one, or one of several alternatives has to be set.',
  AGW0106: 'A name or port is used twice.',
  AGW0107: 'A reference names something that does not exist.',
  AGW0201: 'A CEL expression does not parse.',
  AGW0202: 'A CEL expression uses a variable that is not available in its scope.',
  AGW0203: 'A CEL expression calls a function that does not exist.',
  AGW0204: 'A CEL expression exceeds a limit (length, nodes, depth).',
  AGW0205: 'A CEL expression that must return a boolean returns another type.',
  AGW0301: 'An expression reads `jwt`, but nothing on this route validates a token.',
  AGW0302: 'A secret is written literally in the file.',
  AGW0303: 'A setting has no effect here.',
  AGW0305: 'A setting that clients rely on is missing.',
  AGW0304: 'An authentication policy lets requests without credentials through.',
  AGW0306: 'A route is never reached, because another one takes its requests.',
  AGW0307: 'A `deny` rule fails, and therefore rejects the request, if a header is missing.',
  AGW0308: 'Rules without a keyword may not be combined as intended.',
  AGW0309: 'An expression reads a member that is never set in its scope.',
  AGW0310: 'Part of a CEL expression fails for every input.',
  AGW0312: 'A provider key, an MCP server or other hosts can be used by everyone who can reach the port.',
  AGW0313: 'Tools get names that LLM providers reject.',
  AGW0314: 'An MCP server can change the configuration, which starts programs.',
  AGW0315:
    'A rule denies a path, but not the path with parameters (`;`), which the service may take as the same.',
  AGW0316: 'A budget in USD refuses calls of a model whose price is not known.',
  AGW0317: 'A secret has the placeholder of `agctl init` as its value.',
  AGW0318: 'A rule compares the name of a tool or prompt with the name that clients see.',
  AGW0319: 'A `deny` rule does not apply where a tool gets a list in place of a text.',
  AGW0320: 'A certificate is expired, or not valid yet.',
  AGW0321: 'A rate limit adds one token per interval, because it does not say how many.',
  AGW0401: 'A port could not be opened.',
  AGW0403: 'The database could not be opened.',
  AGW0404: 'A policy in TypeScript could not be loaded.',
  AGW0402: 'A package that the configuration needs is not installed.',
  AGW0501: 'A recorded request gets another status, or no answer.',
  AGW0502: 'A list of tools, prompts, resources or models is not as recorded.',
  AGW0503: 'A result is not as recorded.',
  AGW0504: 'Another policy, server or model answers a recorded request.',
  AGW0505: 'A recorded request does not cost what it did.',
  AGW0506: 'The answer of a model has another form than the recorded one.',
  AGW0507: 'A recorded request cannot be compared.',
} as const;

export type DiagnosticCode = keyof typeof DIAGNOSTIC_CODES;

/** The severity of a problem that names none: what begins with `AGW03` does not keep a configuration from working. */
export const usualSeverity = (code: DiagnosticCode): Severity =>
  code.startsWith('AGW03') ? 'warning' : 'error';
