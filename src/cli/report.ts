import type { Diagnostic, Range } from '../core/diagnostic.ts';
import { type DiagnosticFormat, renderDiagnostics } from '../core/render/diagnostics.ts';
import { diagnosticSource } from '../core/render/source.ts';
import type { YamlSource } from '../core/yaml/source.ts';
import type { LoadedConfig } from '../server/config/load.ts';
import { configSchema } from '../server/config/schema.ts';

export interface ReportOptions {
  readonly format: DiagnosticFormat;
  readonly color: boolean;
  readonly width: number;
}

/** Diagnostics of one or more files as text, with secrets masked in the excerpts. */
export function report(
  diagnostics: readonly Diagnostic[],
  loaded: readonly LoadedConfig[],
  options: ReportOptions,
): string {
  const sources = new Map(
    loaded.map(({ source }) => {
      const shown = diagnosticSource(source, configSchema);
      return [
        source.file,
        { ...shown, secretRanges: [...(shown.secretRanges ?? []), ...passwordRanges(source)] },
      ];
    }),
  );
  return renderDiagnostics(diagnostics, sources, options);
}

/** `user:password@` of URLs, wherever one stands: such a URL is refused, but its line is shown. */
function passwordRanges(source: YamlSource): Range[] {
  return [...source.text.matchAll(/(?<=\/\/|["'\s])[^\s/@"']+:[^\s/@"']+(?=@)/g)].map((match) =>
    source.range(match.index, match.index + match[0].length),
  );
}
