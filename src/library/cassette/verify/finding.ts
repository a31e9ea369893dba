import type { Diagnostic, DiagnosticCode, Path, Severity } from '../../../core/diagnostic.ts';
import { pathText } from '../../../core/diagnostic.ts';
import { membersOf, textIn } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import { type Difference, shown } from '../compare.ts';
import type { Cassette, Exchange } from '../format.ts';
import { redactedByForm } from '../redaction.ts';
import { jsonOf, pathOf, rpcMethod } from '../tape.ts';

/** Something that is not as recorded. */
export interface Finding {
  readonly severity: Severity;
  readonly code: DiagnosticCode;
  /** What follows the name of the request. */
  readonly message: string;
  readonly notes?: readonly string[];
  /** Which part of the answer it is about, so that it is recognized in the next report. */
  readonly path?: Path;
}

/** What a finding lists of differences, with values that look like credentials redacted. */
export function notesOf(differences: readonly Difference[]): string[] {
  const most = LIMITS.cassetteShownDifferences;
  const notes = differences.slice(0, most).map((each) => {
    const { recorded, found } = shown({
      ...each,
      found: redactedByForm(each.found, String(each.path.at(-1))),
    });
    return `${pathText(each.path) || 'the result'}: recorded ${recorded}, now ${found}`;
  });
  return differences.length > most ? [...notes, `and ${differences.length - most} more`] : notes;
}

/** A request as people name it: `POST /mcp tools/call echo`. */
export function nameOf({ request: { method, target, body } }: Exchange): string {
  const json = membersOf(jsonOf(body));
  const rpc = rpcMethod(body) ?? '';
  const { name, uri } = membersOf(json['params']);
  const subject = rpc === '' ? textIn(json['model']) : textIn(name) || textIn(uri);
  return [method, pathOf(target), rpc, subject].filter((each) => each !== '').join(' ');
}

/** A finding with its place, the line of the exchange. */
export function diagnosticOf(finding: Finding, exchange: Exchange, { file }: Cassette): Diagnostic {
  const { severity, code, message, notes, path = [] } = finding;
  const start = { line: exchange.line, column: 1, offset: 0 };
  const name = nameOf(exchange);
  return {
    severity,
    code,
    message: `${name}: ${message}`,
    file,
    path: [name, ...path],
    range: { start, end: start },
    ...(notes !== undefined && notes.length > 0 && { notes }),
  };
}
