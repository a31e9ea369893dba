import type { Diagnostic, Range } from '../core/diagnostic.ts';
import { parseJson } from '../core/foreign.ts';
import type { ProblemsView } from '../core/overview.ts';
import type { Redactor } from '../core/redact.ts';
import { renderJson } from '../core/render/machine.ts';
import type { YamlSource } from '../core/yaml/source.ts';
import { loadConfigText } from '../server/config/load.ts';
import { redactorOf } from '../server/config/redact.ts';
import { findProblems } from '../server/runtime/find-problems.ts';
import type { Admin } from './sources.ts';

export interface Checked {
  readonly source: YamlSource;
  readonly diagnostics: readonly Diagnostic[];
}

/** Validates a text like `agctl config validate`: opens no port, starts no process, sends nothing. */
export async function checkText(text: string, { served, folder }: Admin): Promise<Checked> {
  const { source, runtime } = served();
  const { env } = runtime;
  const loaded = loadConfigText(text, source.file, env);
  return { source: loaded.source, diagnostics: await findProblems(loaded, { folder, env }) };
}

/** The report as JSON, without secrets; `range` maps places to the text that the page displays. */
export function checkedJson(
  { source, diagnostics }: Checked,
  { served }: Admin,
  range: (range: Range) => Range,
): ProblemsView {
  const moved = diagnostics.map(({ fix, ...each }) => ({
    ...each,
    range: range(each.range),
    ...(fix !== undefined && {
      fix: { ...fix, edits: fix.edits.map((edit) => ({ ...edit, range: range(edit.range) })) },
    }),
  }));
  return diagnosticsJson(moved, redactorOf(source, served().runtime.env));
}

/** Diagnostics in the form of `agctl config validate -o json`, in source order, without secrets. */
export function diagnosticsJson(diagnostics: readonly Diagnostic[], redactor: Redactor): ProblemsView {
  const ordered = diagnostics
    .toSorted((a, b) => a.range.start.offset - b.range.start.offset)
    .map(({ notesQuoteFile, notes, ...each }) =>
      notes === undefined || notesQuoteFile ? each : { ...each, notes },
    );
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `renderJson` has written it
  return redactor.value(parseJson(renderJson(ordered))) as ProblemsView;
}
