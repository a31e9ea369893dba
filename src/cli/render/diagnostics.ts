import type { Diagnostic } from '../../core/diagnostic.ts';
import { byForm } from '../../core/redact.ts';
import { renderConcise, renderGithub, renderJson, renderSarif } from '../../core/render/machine.ts';
import type { DiagnosticSource } from '../../core/render/source.ts';
import { renderText, type TextStyle } from './text.ts';

export type DiagnosticFormat = 'text' | 'concise' | 'json' | 'github' | 'sarif';

export interface RenderOptions extends TextStyle {
  readonly format: DiagnosticFormat;
}

/**
 * Renders `diagnostics` in the given order, without a summary and without a trailing line break; the text form
 * separates them with an empty line. A diagnostic whose file is missing from `sources` is rendered without an excerpt.
 * Messages quote values, so credentials that are recognized by their form are redacted.
 */
export function renderDiagnostics(
  found: readonly Diagnostic[],
  sources: ReadonlyMap<string, DiagnosticSource>,
  options: RenderOptions,
): string {
  const diagnostics = found.map(redacted);
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

/** `fix` needs no redaction: it repeats no value of the file. */
function redacted(diagnostic: Diagnostic): Diagnostic {
  const { message, label, help, notes } = diagnostic;
  return {
    ...diagnostic,
    message: byForm.text(message),
    ...(label !== undefined && { label: byForm.text(label) }),
    ...(help !== undefined && { help: byForm.text(help) }),
    ...(notes !== undefined && { notes: notes.map((note) => byForm.text(note)) }),
  };
}
