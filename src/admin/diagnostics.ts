import type { Diagnostic } from '../core/diagnostic.ts';
import type { ProblemsView } from '../core/overview.ts';
import type { Redactor } from '../core/redact.ts';
import { renderJson } from '../core/render/machine.ts';

/** Diagnostics in the form of `agctl config validate -o json`, in source order, without secrets. */
export function diagnosticsJson(diagnostics: readonly Diagnostic[], redactor: Redactor): ProblemsView {
  const ordered = diagnostics
    .toSorted((a, b) => a.range.start.offset - b.range.start.offset)
    .map(({ notesQuoteFile, notes, ...each }) =>
      notes === undefined || notesQuoteFile ? each : { ...each, notes },
    );
  return redactor.value(JSON.parse(renderJson(ordered))) as ProblemsView;
}
