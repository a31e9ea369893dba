import type { Path, Range } from '../diagnostic.ts';
import { byForm } from '../redact.ts';
import { secretRanges } from '../schema/secrets.ts';
import type { Schema } from '../schema/walk.ts';
import type { YamlSource } from '../yaml/source.ts';

/** What the renderers of diagnostics need of a file. */
export interface DiagnosticSource {
  readonly text: string;
  /** Masked in excerpts. */
  readonly secretRanges?: readonly Range[];
  /** Gives a problem inside a text of several lines the lines above it. */
  valueRange?(path: Path): Range;
  /** Gives list entries their names in fingerprints. */
  readonly value?: unknown;
}

/** `source` for the renderers, with everything masked that `schema` or its form says is secret. */
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
