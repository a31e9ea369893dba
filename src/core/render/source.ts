import type { Path, Range } from '../diagnostic.ts';
import { byForm } from '../redact.ts';
import { secretRanges } from '../schema/secrets.ts';
import type { Schema } from '../schema/walk.ts';
import type { YamlSource } from '../yaml/source.ts';

/** What the diagnostic renderers need to know about a file. */
export interface DiagnosticSource {
  readonly text: string;
  /** Masked in excerpts. */
  readonly secretRanges?: readonly Range[];
  /** Range of the value at `path`, used to show the preceding lines of a multi-line value. */
  valueRange?(path: Path): Range;
  /** The parsed value, used to name list entries in fingerprints. */
  readonly value?: unknown;
}

/** A `source` for the renderers, in which everything is masked that is secret by its schema or by its form. */
export function diagnosticSource(source: YamlSource, schema: Schema): DiagnosticSource {
  return {
    text: source.text,
    value: source.value,
    secretRanges: [
      ...secretRanges(schema, source),
      ...byForm.places(source.text).map(([start, end]) => source.range(start, end)),
    ],
    valueRange: (path) => source.valueRange(path),
  };
}
