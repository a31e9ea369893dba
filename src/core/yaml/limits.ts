import type { DiagnosticCode, Path } from '../diagnostic.ts';

/** Bounds on one configuration file: far above what people write, far below what hurts the process. */
export const YAML_LIMITS = {
  /** UTF-8 bytes of the file, and UTF-16 units of what environment variables add to it. */
  bytes: 5 * 1024 * 1024,
  /** Alias nodes (`*name`) in the file. */
  aliases: 100,
  /** Values that all aliases together stand for; nine levels of nine aliases would be 387 million. */
  aliasedValues: 100_000,
  /** Collections inside each other. */
  depth: 64,
  /** Lexical units (a line of `key: value` has about seven); the parser needs 1 µs and 1 KiB for each. */
  lexemes: 100_000,
  /** Of a line, at its beginning and end: looked at to say where a misplaced one belongs. Text may be one huge line. */
  columns: 256,
  /** Problems reported for one file; nobody reads more, and a hostile file would have one per key. */
  problems: 200,
  /** Times that a value is mended and checked again: a place takes up to two, then what holds it is next. */
  repairs: 12,
} as const;

/** A problem by offsets in the text, before it is given lines and columns. */
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
