import type { Diagnostic } from '../../core/diagnostic.ts';
import { byForm } from '../../core/redact.ts';
import { counted } from '../../core/render/counted.ts';
import { renderConcise, renderGithub, renderJson, renderSarif } from '../../core/render/machine.ts';
import type { DiagnosticSource } from '../../core/render/source.ts';
import { renderText, type TextStyle } from './text.ts';

export type DiagnosticFormat = 'text' | 'concise' | 'json' | 'github' | 'sarif';

/** Of warnings that say the same of different places, a terminal shows so many in full: a file can have hundreds of models. */
const SHOWN_OF_A_KIND = 5;
/** And names the lines of so many others. */
const LISTED_LINES = 20;

export interface RenderOptions extends TextStyle {
  readonly format: DiagnosticFormat;
}

/**
 * Renders `diagnostics` in the given order, without a summary and without a trailing line break; the text form
 * separates them with an empty line, and names only the lines of warnings that repeat others. A diagnostic whose file is missing from `sources` is rendered without an excerpt.
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
      return inText(diagnostics, sources, options);
  }
}

function inText(
  diagnostics: readonly Diagnostic[],
  sources: ReadonlyMap<string, DiagnosticSource>,
  style: TextStyle,
): string {
  const warnings = diagnostics.filter(({ severity }) => severity !== 'error');
  const kinds = Map.groupBy(warnings, ({ code, message, file }) => JSON.stringify([code, message, file]));
  const hidden = new Set<Diagnostic>();
  const summaries = new Map<Diagnostic, string>();
  for (const alike of kinds.values()) {
    const [first, ...more] = alike.slice(SHOWN_OF_A_KIND);
    if (first === undefined) continue;
    for (const each of more) hidden.add(each);
    summaries.set(first, alsoAt([first, ...more], style));
  }
  return diagnostics
    .filter((each) => !hidden.has(each))
    .map((each) => summaries.get(each) ?? renderText(each, sources.get(each.file), style))
    .join('\n\n');
}

/** `warning[AGW0302]: 95 more places with the same: lines 16, 20, …` */
function alsoAt(alike: readonly Diagnostic[], { ascii }: TextStyle): string {
  const [first] = alike;
  const lines = [...new Set(alike.map(({ range }) => range.start.line))];
  const listed = lines.slice(0, LISTED_LINES).join(', ');
  const more = lines.length > LISTED_LINES ? `, ${ascii ? '...' : '…'}` : '';
  const places = `${lines.length === 1 ? 'line' : 'lines'} ${listed}${more}`;
  return `${first?.severity}[${first?.code}]: ${counted(alike.length, 'more place')} with the same: ${places}`;
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
