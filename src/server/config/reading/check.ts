import type { z } from 'zod';
import { type Diagnostic, inOrder, type Path, type Range } from '../../../core/diagnostic.ts';
import {
  alternatives,
  childSchemas,
  definition,
  isOptional,
  isSwitch,
  type Schema,
  valueAt,
} from '../../../core/schema/walk.ts';
import type { YamlSource } from '../../../core/yaml/source.ts';
import { type Finding, MAX_FINDINGS } from './finding.ts';
import { fixFor } from './fix.ts';
import { IssueTranslator } from './issue.ts';

export interface SchemaResult<T> {
  /** Undefined when there are problems, here or already in the YAML. */
  readonly value: T | undefined;
  readonly diagnostics: readonly Diagnostic[];
  /** Keys without a value that count as absent. */
  readonly absent: readonly Path[];
}

/**
 * Checks the values of `source` against `schema` and reports every problem in source order, with codes AGW0101 to
 * AGW0105 or those of custom issues. Follow-up problems of one that was already reported are left out, so `value` may
 * be undefined without a diagnostic from here if the YAML itself had some. Messages never contain texts of the file
 * that may be secret.
 */
export function checkSchema<T>(schema: z.ZodType<T>, source: YamlSource): SchemaResult<T> {
  if (source.value === undefined) return { value: undefined, diagnostics: [], absent: [] };
  const { value, absent } = withoutEmptyMappings(schema, source.value);
  const result = schema.safeParse(value, CHECK_OPTIONS);
  if (result.success) return { value: result.data, diagnostics: [], absent };
  const findings = findingsOf(schema, source, result.error.issues, value);
  const meant = new Set(findings.flatMap(({ meant: path }) => (path === undefined ? [] : [pathKey(path)])));
  const withUnknown = new Set(
    findings.flatMap(({ code, path }) => (code === 'AGW0101' ? [pathKey(path.slice(0, -1))] : [])),
  );
  const firstHand = findings.filter(({ missing, code, path }) => {
    if (source.isPoisoned(path)) return false;
    // The missing key is there, but misspelled.
    return !(missing && meant.has(pathKey(path))) && !(code === 'AGW0105' && withUnknown.has(pathKey(path)));
  });
  const diagnostics = inOrder(firstHand.map((finding) => locate(finding, source))).slice(0, MAX_FINDINGS);
  return { value: undefined, diagnostics, absent };
}

/** How configurations are parsed. */
export const CHECK_OPTIONS = {
  /** Empty messages distinguish a check without a message from one whose author wrote a message. */
  error: (): string => '',
  /** zod otherwise compiles a function for each object schema: 25 ms for a configuration, which is parsed once. */
  jitless: true,
} as const;

/**
 * Findings for zod's issues, with paths of `value`, which is the file's value or what is left of it. Includes follow-up
 * findings.
 */
export function findingsOf(
  schema: z.ZodType,
  source: YamlSource,
  issues: readonly z.core.$ZodIssue[],
  value: unknown,
): Finding[] {
  const translator = new IssueTranslator(schema, source, value);
  const findings: Finding[] = [];
  for (const issue of issues) {
    if (findings.length >= MAX_FINDINGS) break;
    findings.push(...translator.translate(issue, { schema, path: [] }));
  }
  return findings;
}

/** A path as a key of sets and maps. */
export function pathKey(path: Path): string {
  return JSON.stringify(path);
}

function locate(finding: Finding, source: YamlSource): Diagnostic {
  const { code, path, at, message, label, help, notes } = finding;
  const place = finding.missing ? path.slice(0, -1) : path;
  const fix = finding.remedy && fixFor(finding.remedy, path, source);
  return {
    severity: 'error',
    code,
    message: emptyVariable(path, source) ?? message,
    file: source.file,
    path,
    range: at === 'key' ? holderRange(place, source) : source.valueRange(place),
    ...(label !== undefined && { label }),
    ...(help !== undefined && { help }),
    ...(notes !== undefined && { notes }),
    ...(fix !== undefined && { fix }),
  };
}

/** Without its value, a variable looks like a missing value of whichever type is tried last. */
function emptyVariable(path: Path, source: YamlSource): string | undefined {
  if (![null, ''].some((empty) => empty === valueAt(source.value, path))) return undefined;
  const names = source.variablesAt(path).map((name) => `\`${name}\``);
  return names.length === 0 ? undefined : `the value is missing: ${names.join(' and ')} is empty or not set`;
}

/** The range of the key at `path`. The root and list items have no key; their first key is used instead. */
function holderRange(path: Path, source: YamlSource): Range {
  const value = valueAt(source.value, path);
  const isMapping = value !== null && typeof value === 'object' && !Array.isArray(value);
  const first = isMapping && typeof path.at(-1) !== 'string' ? Object.keys(value)[0] : undefined;
  return source.keyRange(first === undefined ? path : [...path, first]);
}

/** A value without the keys that count as absent, and the paths of those keys. */
interface WithoutEmpty {
  readonly value: unknown;
  readonly absent: readonly Path[];
}

/**
 * Removes keys without a value (`policies:`) where the schema has an optional mapping: a user who empties a section, or
 * comments out its lines, means that there is none. A missing switch, text, number or list is kept, because it is a mistake,
 * for example an empty variable.
 */
export function withoutEmptyMappings(schema: Schema, value: unknown): WithoutEmpty {
  const absent: Path[] = [];
  return { value: present([schema], value, [], absent), absent };
}

function present(schemas: readonly Schema[], value: unknown, path: Path, absent: Path[]): unknown {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value))
    return value.map((item, index) => present(childrenOf(schemas, index), item, [...path, index], absent));
  const entries = Object.entries(value).flatMap(([key, child]): [string, unknown][] => {
    const at = [...path, key];
    const children = childrenOf(schemas, key);
    if (child !== null) return [[key, present(children, child, at, absent)]];
    if (!children.some(isOptionalMapping)) return [[key, child]];
    absent.push(at);
    return [];
  });
  return Object.fromEntries(entries);
}

function childrenOf(schemas: readonly Schema[], segment: string | number): Schema[] {
  return schemas.flatMap((schema) => childSchemas(schema, segment));
}

function isOptionalMapping(schema: Schema): boolean {
  return (
    isOptional(schema) &&
    !isSwitch(schema) &&
    alternatives(schema).every((each) => ['object', 'record'].includes(definition(each).type))
  );
}
