import type { Diagnostic } from '../diagnostic.ts';
import { renderConcise, renderGithub, renderJson, renderSarif } from './machine.ts';
import type { DiagnosticSource } from './source.ts';
import { renderText, type TextStyle } from './text.ts';

export type DiagnosticFormat = 'text' | 'concise' | 'json' | 'github' | 'sarif';

export interface RenderOptions extends TextStyle {
  readonly format: DiagnosticFormat;
}

/**
 * Renders `diagnostics` in the order given, without a summary and without a line break at the end; the text form
 * leaves an empty line between two of them. A file that is missing from `sources` is shown without an excerpt.
 */
export function renderDiagnostics(
  diagnostics: readonly Diagnostic[],
  sources: ReadonlyMap<string, DiagnosticSource>,
  options: RenderOptions,
): string {
  switch (options.format) {
    case 'concise':
      return renderConcise(diagnostics);
    case 'json':
      return renderJson(diagnostics);
    case 'github':
      return renderGithub(diagnostics);
    case 'sarif':
      return renderSarif(diagnostics, sources);
    case 'text':
      return diagnostics.map((each) => renderText(each, sources.get(each.file), options)).join('\n\n');
  }
}
