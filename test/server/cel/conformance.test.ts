import { tests as data } from '@bufbuild/cel-spec/testdata/conformance.js';
import { describe, expect, it } from 'vitest';
import { compile } from '../../../src/server/expressions/cel/compile.ts';
import { parse } from '../../../src/server/expressions/cel/engine.ts';
import { mapEntries } from '../../../src/server/expressions/cel/maps.ts';
import { CelType, typeName, Uint, type Value } from '../../../src/server/expressions/cel/values.ts';

/**
 * The official tests of the language (cel-spec, as packed by @bufbuild/cel-spec). Tests that need protobuf messages or
 * enums do not apply: a gateway has none.
 */

const BASE = [
  'basic',
  'comparisons',
  'conversions',
  'fields',
  'fp_math',
  'integer_math',
  'lists',
  'logic',
  'macros',
  'namespace',
  'parse',
  'plumbing',
  'string',
  'timestamps',
  'type_deductions',
];
const EXTENSIONS = ['bindings_ext', 'encoders_ext', 'macros2', 'math_ext', 'optionals', 'string_ext'];

/** Number of passing tests in all base files. Raise it when more pass. */
const PINNED = 1_051;

interface SpecValue {
  int64Value?: string;
  uint64Value?: string;
  doubleValue?: number | string;
  stringValue?: string;
  bytesValue?: string;
  boolValue?: boolean;
  nullValue?: null;
  listValue?: { values?: SpecValue[] };
  mapValue?: { entries?: { key: SpecValue; value: SpecValue }[] };
  typeValue?: string;
}

interface SpecTest {
  name?: string;
  expr: string;
  value?: SpecValue;
  typedResult?: { result?: SpecValue };
  evalError?: unknown;
  checkOnly?: boolean;
  container?: string;
  typeEnv?: { name: string; ident?: unknown }[];
  bindings?: Record<string, { value: SpecValue }>;
}

interface Suite {
  name: string;
  suites?: Suite[];
  tests?: { original: SpecTest }[];
}

/** A value as text with its types, so that 1, 1u and 1.0 differ. Maps are sorted by key. */
function shown(value: Value): string {
  const entries = mapEntries(value);
  if (entries !== undefined)
    return `{${entries
      .map(([k, v]) => `${shownKey(k)}=${shown(v)}`)
      .sort()
      .join()}}`;
  if (Array.isArray(value)) return `[${value.map(shown).join()}]`;
  if (value instanceof Uint8Array) return `bytes:${Buffer.from(value).toString('hex')}`;
  if (value instanceof Uint) return `uint:${value.value}`;
  if (value instanceof CelType) return `type:${value.name}`;
  return `${typeName(value)}:${Object.is(value, -0) ? '-0' : value}`;
}

// Keys 1 and 1u are the same key in a map; the original type is not kept.
function shownKey(key: Value): string {
  return `${typeof key}:${key}`;
}

function celValue(spec: SpecValue): Value {
  if (spec.int64Value !== undefined) return BigInt(spec.int64Value);
  if (spec.uint64Value !== undefined) return new Uint(BigInt(spec.uint64Value));
  if (spec.doubleValue !== undefined) return Number(spec.doubleValue);
  if (spec.bytesValue !== undefined) return Buffer.from(spec.bytesValue, 'base64');
  if (spec.listValue !== undefined) return (spec.listValue.values ?? []).map(celValue);
  if (spec.typeValue !== undefined) return new CelType(spec.typeValue);
  if (spec.mapValue !== undefined) {
    return new Map((spec.mapValue.entries ?? []).map(({ key, value }) => [keyOf(key), celValue(value)]));
  }
  return spec.stringValue ?? spec.boolValue ?? null;
}

function keyOf(spec: SpecValue): string | bigint | boolean {
  const key = celValue(spec);
  return key instanceof Uint ? key.value : (key as string | bigint | boolean);
}

function usesMessages(test: SpecTest): boolean {
  return /TestAllTypes|NestedEnum|google\.protobuf\.(?!Timestamp\b|Duration\b)\w|google\.protobuf\.\w+\{|objectValue|enumValue|messageType":"(?!google\.protobuf\.(?:Timestamp|Duration))|wellKnown":"ANY/.test(
    JSON.stringify(test),
  );
}

function run(test: SpecTest): string {
  const bindings = test.bindings ?? {};
  const names = [
    ...new Set([
      ...(test.typeEnv ?? []).filter((e) => e.ident !== undefined).map(({ name }) => name),
      ...Object.keys(bindings),
    ]),
  ];
  try {
    const { step, slots } = compile(parse(test.expr), names);
    return shown(
      step({
        slots: new Array(slots),
        lookup: (name) => (bindings[name] === undefined ? null : celValue(bindings[name].value)),
      }),
    );
  } catch (error) {
    return `error: ${(error as Error).message}`;
  }
}

function passes(test: SpecTest): boolean {
  const got = run(test);
  const expected = test.value ?? test.typedResult?.result;
  if (expected !== undefined) return got === shown(celValue(expected));
  return test.evalError === undefined ? got === 'bool:true' : got.startsWith('error: ');
}

function testsOf(suite: Suite): SpecTest[] {
  return [...(suite.tests ?? []).map(({ original }) => original), ...(suite.suites ?? []).flatMap(testsOf)];
}

function score(file: string): { passed: number; total: number; failed: string[] } {
  const suite = (data as Suite).suites?.find(({ name }) => name === file);
  const tests = testsOf(suite as Suite).filter((test) => !usesMessages(test) && test.checkOnly !== true);
  const failed = tests.filter((test) => !passes(test)).map((test) => `${test.expr} -> ${run(test)}`);
  return { passed: tests.length - failed.length, total: tests.length, failed };
}

function report(files: readonly string[]): { passed: number; total: number } {
  const all = { passed: 0, total: 0 };
  for (const file of files) {
    const { passed, total, failed } = score(file);
    all.passed += passed;
    all.total += total;
    console.log(`${file.padEnd(16)} ${passed}/${total}`);
    if (process.env['CEL_CONFORMANCE_FAILURES']) for (const line of failed) console.log(`  ${line}`);
  }
  return all;
}

describe('official CEL conformance tests', () => {
  it('base CEL conformance tests pass at the pinned count and at least 90 percent', () => {
    const { passed, total } = report(BASE);
    console.log(`base             ${passed}/${total} = ${((passed / total) * 100).toFixed(1)} %`);
    expect(total).toBeGreaterThan(1_000);
    expect(passed / total).toBeGreaterThanOrEqual(0.9);
    expect(passed).toBeGreaterThanOrEqual(PINNED);
  });

  it('CEL extension conformance tests pass by more than half', () => {
    const { passed, total } = report(EXTENSIONS);
    console.log(`extensions       ${passed}/${total}`);
    expect(passed).toBeGreaterThan(total / 2);
  });
});
