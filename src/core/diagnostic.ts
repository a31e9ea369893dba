/**
 * A located problem in a file that a person wrote. Every check of a configuration reports these, all at once,
 * and every front end (start-up, `config validate`, admin API, web) prints the same ones.
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

export type Severity = 'error' | 'warning';

/** A path as people write it: `gateways.default.routes[0]`. */
export function pathText(path: Path): string {
  return path
    .map((each) => (typeof each === 'number' ? `[${each}]` : `.${each}`))
    .join('')
    .replace(/^\./, '');
}

/**
 * One problem. `message` says what is wrong, in lower case and without a full stop; `label` stands beside the
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
  /** The notes quote a file that the configuration names: for who runs the command, and not for the admin server. */
  readonly notesQuoteFile?: true;
  readonly fix?: Fix;
}

/** Changes of the text that do away with a problem. They repeat no value of the file: it may be secret. */
export interface Fix {
  /** What they do, in a few words. */
  readonly title: string;
  /** In the order of the text, without overlaps. */
  readonly edits: readonly Edit[];
}

export interface Edit {
  readonly range: Range;
  /** Stands there afterwards. */
  readonly text: string;
}

/** In the order of the text, each once: a list that stands for several routes is checked for each of them. */
export function inOrder(diagnostics: readonly Diagnostic[]): Diagnostic[] {
  const seen = new Set<string>();
  return diagnostics
    .filter(({ code, range, message }) => {
      const key = `${code} ${range.start.offset} ${message}`;
      return !seen.has(key) && seen.add(key);
    })
    .sort((a, b) => a.range.start.offset - b.range.start.offset);
}

/** Every code that `agctl config validate` can print, with one line of documentation. Codes are never reused. */
export const DIAGNOSTIC_CODES = {
  AGW0001: 'The file is not valid YAML.',
  AGW0002: 'A mapping holds the same key twice.',
  AGW0003: 'An alias, anchor, tag or nesting depth goes beyond what a configuration may use.',
  AGW0004: 'An environment variable in the file is not defined and has no fallback.',
  AGW0005: 'The file could not be read, or is too large.',
  AGW0101: 'A key is not known at this place.',
  AGW0102: 'A value has the wrong type.',
  AGW0103: 'A required key is missing.',
  AGW0104: 'A value is not one of the allowed ones, or out of range.',
  AGW0105: 'Keys that exclude each other stand together, or none of a set of alternatives is present.',
  AGW0106: 'A name or port is used twice.',
  AGW0107: 'A reference names something that does not exist.',
  AGW0201: 'A CEL expression does not parse.',
  AGW0202: 'A CEL expression uses a variable that this place does not have.',
  AGW0203: 'A CEL expression calls a function that does not exist.',
  AGW0204: 'A CEL expression is over a limit (length, nodes, depth).',
  AGW0205: 'A CEL expression that must say yes or no gives something else.',
  AGW0301: 'An expression reads `jwt`, but nothing on this route validates a token.',
  AGW0302: 'A secret stands literally in the file.',
  AGW0303: 'A setting has no effect here.',
  AGW0305: 'A setting that clients rely on is missing.',
  AGW0304: 'An authentication policy lets requests without credentials through.',
  AGW0306: 'A route is never reached, because another one takes its requests.',
  AGW0307: 'A `deny` rule fails, and so refuses, where a header is missing.',
  AGW0308: 'Rules of several forms stand together, and the plain ones may not count as meant.',
  AGW0309: 'An expression reads a member that is never set in its place.',
  AGW0310: 'A part of a CEL expression fails whatever it is given.',
  AGW0312: 'A provider key can be used by everyone who reaches the port.',
  AGW0313: 'Tools get names that providers of LLMs refuse.',
  AGW0401: 'A port could not be opened.',
} as const;

export type DiagnosticCode = keyof typeof DIAGNOSTIC_CODES;
