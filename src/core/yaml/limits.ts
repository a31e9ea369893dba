import type { DiagnosticCode, Path } from '../diagnostic.ts';

/** Bounds of one configuration file: far above what people write, far below what harms the process. */
export const YAML_LIMITS = {
  /** UTF-8 bytes of the file, and UTF-16 units that environment variables add to it. */
  bytes: 5 * 1024 * 1024,
  /** Alias nodes (`*name`) in the file. */
  aliases: 100,
  /** Values that all aliases expand to together; nine levels of nine aliases would be 387 million. */
  aliasedValues: 100_000,
  /** Nesting of collections. */
  depth: 64,
  /**
   * Tokens of a configuration (a line of `key: value` has about seven, 10,000 routes have 450,000); the parser needs 1 µs
   * and 1 KiB for each.
   */
  lexemes: 500_000,
  /** Tokens of a document from elsewhere, which the parser reads in 0.1 s. */
  foreignLexemes: 100_000,
  /**
   * Characters at the beginning and end of a line that are inspected to suggest a column for a misplaced line. A text
   * may be a single huge line.
   */
  columns: 256,
  /** Problems reported for one file: readers look at no more, and a hostile file would have one per key. */
  problems: 200,
  /**
   * Rounds of replacing invalid values and validating again. One place takes up to two rounds, then its parent is next.
   */
  repairs: 12,
} as const;

/** A problem with offsets in the text, before they are converted to lines and columns. */
export interface YamlProblem {
  readonly code: DiagnosticCode;
  readonly message: string;
  readonly start: number;
  readonly end: number;
  readonly path: Path;
  readonly label?: string;
  readonly help?: string;
  readonly notes?: readonly string[];
}
