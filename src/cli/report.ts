import type { Diagnostic } from '../core/diagnostic.ts';
import { type DiagnosticFormat, renderDiagnostics } from '../core/render-diagnostics.ts';
import { diagnosticSource } from '../core/render-source.ts';
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
  const sources = new Map(loaded.map(({ source }) => [source.file, diagnosticSource(source, configSchema)]));
  return renderDiagnostics(diagnostics, sources, options);
}
