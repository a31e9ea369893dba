import {
  DIAGNOSTIC_CODES,
  type Diagnostic,
  type DiagnosticCode,
  type Path,
  type Position,
  type Range,
} from '../diagnostic.ts';
import { VERSION } from '../version.ts';
import type { DiagnosticSource } from './source.ts';
import { escapeControls } from './width.ts';

const TOOL = 'agctl';

/** One line per diagnostic, as compilers print them: `file:line:column: severity code message`. */
export function renderConcise(diagnostics: readonly Diagnostic[]): string {
  return diagnostics
    .map(({ file, range, severity, code, message }) => {
      const place = `${file}:${range.start.line}:${range.start.column}`;
      return escapeControls(`${place}: ${severity} ${code} ${message}`);
    })
    .join('\n');
}

/** One JSON document. Adding fields increases the minor part of `formatVersion`. */
export function renderJson(diagnostics: readonly Diagnostic[]): string {
  const count = (severity: string) => diagnostics.filter((each) => each.severity === severity).length;
  const report = {
    formatVersion: '1.1',
    tool: { name: TOOL, version: VERSION },
    valid: count('error') === 0,
    errorCount: count('error'),
    warningCount: count('warning'),
    diagnostics: diagnostics.map(
      ({ file, range, path, severity, code, message, label, help, notes, fix }) => ({
        severity,
        code,
        message,
        path: jsonPointer(path),
        range: { file, start: range.start, end: range.end },
        label,
        help,
        notes,
        fix,
      }),
    ),
  };
  return printJson(report);
}

/** Prints JSON with `\\u` escapes for characters that could control a terminal; the parsed value is the same. */
function printJson(value: object): string {
  const escapeUnits = (char: string) =>
    [...Array(char.length).keys()]
      .map((unit) => `\\u${char.charCodeAt(unit).toString(16).padStart(4, '0')}`)
      .join('');
  return JSON.stringify(value, null, 2).replace(/(?!\n)[\p{Cc}\p{Cf}\u2028\u2029]/gu, escapeUnits);
}

/** Workflow commands, which GitHub Actions displays at the line. */
export function renderGithub(diagnostics: readonly Diagnostic[]): string {
  return diagnostics
    .map(({ help, notes = [], message, code, ...where }) =>
      githubAnnotation({
        ...where,
        title: code,
        lines: [message, ...(help === undefined ? [] : [help]), ...notes],
      }),
    )
    .join('\n');
}

interface Annotation extends Pick<Diagnostic, 'file' | 'severity'> {
  /** Without one, it is shown at the file. */
  readonly range?: Range | undefined;
  readonly title: string;
  readonly lines: readonly string[];
}

/** One workflow command. Neither its properties nor its text can end it or begin another one. */
export function githubAnnotation({ file, range, severity, title, lines }: Annotation): string {
  // GitHub has another word for it.
  const command = severity === 'note' ? 'notice' : severity;
  const properties = [`file=${escapeProperty(escapeControls(file))}`, ...placeOf(range)];
  const text = escapeData(lines.map(escapeControls).join('\n'));
  return `::${command} ${properties.join(',')},title=${escapeProperty(escapeControls(title))}::${text}`;
}

function placeOf(range: Range | undefined): string[] {
  if (range === undefined) return [];
  const { start, end } = range;
  // GitHub ignores the columns of a range that spans several lines.
  const columns = start.line === end.line ? [`col=${start.column}`, `endColumn=${end.column}`] : [];
  return [`line=${start.line}`, `endLine=${end.line}`, ...columns];
}

function escapeData(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function escapeProperty(text: string): string {
  return escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}

/** A SARIF 2.1.0 log with one run: https://docs.oasis-open.org/sarif/sarif/v2.1.0/. */
export function renderSarif(
  diagnostics: readonly Diagnostic[],
  sources: ReadonlyMap<string, DiagnosticSource>,
): string {
  const codes = [...new Set(diagnostics.map(({ code }) => code))].toSorted();
  const log = {
    $schema: 'https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: { driver: { name: TOOL, version: VERSION, rules: codes.map(sarifRule) } },
        columnKind: 'utf16CodeUnits',
        results: diagnostics.map((each) =>
          sarifResult(each, codes.indexOf(each.code), sources.get(each.file)),
        ),
      },
    ],
  };
  return printJson(log);
}

function sarifRule(code: DiagnosticCode): object {
  return { id: code, shortDescription: { text: DIAGNOSTIC_CODES[code] } };
}

function sarifResult(
  diagnostic: Diagnostic,
  ruleIndex: number,
  source: DiagnosticSource | undefined,
): object {
  const { code, severity, message, help, notes = [], file, range, path } = diagnostic;
  return {
    ruleId: code,
    ruleIndex,
    level: severity,
    message: { text: [message, ...(help === undefined ? [] : [help]), ...notes].join('\n') },
    locations: [
      {
        physicalLocation: {
          artifactLocation: { uri: encodeURI(file.replaceAll('\\', '/')) },
          region: region(range.start, range.end),
        },
      },
    ],
    partialFingerprints: { 'agctl/v1': `${code} ${jsonPointer(namedPath(path, source?.value))}` },
  };
}

function region(start: Position, end: Position): object {
  return { startLine: start.line, startColumn: start.column, endLine: end.line, endColumn: end.column };
}

/** Replaces list indexes by names, so that a fingerprint stays the same when an entry is added above. */
function namedPath(path: Path, root: unknown): Path {
  let at = root;
  return path.map((segment) => {
    at = isRecord(at) && Object.hasOwn(at, segment) ? at[segment] : undefined;
    const name = isRecord(at) ? nameOf(at) : undefined;
    return typeof segment === 'number' && typeof name === 'string' ? name : segment;
  });
}

function nameOf(entry: { readonly name?: unknown }): unknown {
  return entry.name;
}

function isRecord(value: unknown): value is Record<string | number, unknown> {
  return value !== null && typeof value === 'object';
}

/** RFC 6901. */
function jsonPointer(path: Path): string {
  return path.map((each) => `/${String(each).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}
