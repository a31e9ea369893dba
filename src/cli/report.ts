import { join, sep } from 'node:path';
import type { Diagnostic, Range } from '../core/diagnostic.ts';
import { diagnosticSource } from '../core/render/source.ts';
import type { YamlSource } from '../core/yaml/source.ts';
import { secretArguments } from '../server/config/lint.ts';
import type { LoadedConfig } from '../server/config/load.ts';
import { configSchema } from '../server/config/schema.ts';
import type { Context } from './context.ts';
import { asCalled } from './invocation.ts';
import { type DiagnosticFormat, renderDiagnostics } from './render/diagnostics.ts';

export interface ReportOptions {
  readonly format: DiagnosticFormat;
  readonly color: boolean;
  readonly width: number;
  /** Absent: messages call this program `agctl`. */
  readonly context?: Context;
}

/** Renders diagnostics of one or more files as text, with secrets masked in the excerpts. */
export function report(
  diagnostics: readonly Diagnostic[],
  loaded: readonly LoadedConfig[],
  options: ReportOptions,
): string {
  const sources = new Map(
    loaded.map(({ source }) => {
      const shown = diagnosticSource(source, configSchema);
      const inArguments = secretArguments(source).map((path) => source.valueRange(path));
      return [
        source.file,
        {
          ...shown,
          secretRanges: [...(shown.secretRanges ?? []), ...inArguments, ...passwordRanges(source)],
        },
      ];
    }),
  );
  // Other formats are for programs, on other machines too.
  const { context, format } = options;
  const shown =
    format === 'text' && context !== undefined
      ? diagnostics.map((each) => forReader(each, context))
      : diagnostics;
  return renderDiagnostics(shown, sources, options);
}

/** With commands as this program was called, and paths as they are written in the working folder. */
function forReader(diagnostic: Diagnostic, context: Context): Diagnostic {
  const { message, help, notes } = diagnostic;
  const inFolder = (text: string): string => withoutFolder(text, context.cwd);
  return {
    ...diagnostic,
    message: inFolder(message),
    ...(help !== undefined && { help: asCalled(inFolder(help), context) }),
    ...(notes !== undefined && { notes: notes.map(inFolder) }),
  };
}

/** A text whose absolute paths below a folder are relative to it. */
function withoutFolder(text: string, folder: string): string {
  const prefix = join(folder, sep);
  if (prefix === sep) return text;
  const isBegin = (at: number): boolean => at === 0 || ' `\'"('.includes(text.charAt(at - 1));
  return text.replaceAll(prefix, (found, at: number) => (isBegin(at) ? '' : found));
}

/** `user:password@` in any URL: such a URL is refused, but its line is displayed. */
function passwordRanges(source: YamlSource): Range[] {
  return [...source.text.matchAll(/(?<=\/\/|["'\s])[^\s/@"':]+:[^\s/@"']+(?=@)/g)].map((match) =>
    source.range(match.index, match.index + match[0].length),
  );
}
