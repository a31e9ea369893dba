import { describe, expect, it } from 'vitest';
import { toCel } from '../../../src/server/expressions/cel/expression.ts';
import { run } from './run.ts';

describe('toCel', () => {
  it('toCel converts integral numbers to int only while they are exact', () => {
    expect(toCel(5)).toBe(5n);
    expect(toCel(5.5)).toBe(5.5);
    expect(toCel(2 ** 53)).toBe(2 ** 53);
    expect(toCel([1, 'a', [2]])).toEqual([1n, 'a', [2n]]);
  });

  it('toCel does not copy values that need no conversion', () => {
    const object = { deep: [1] };
    const list = ['a', object];
    expect(toCel(object)).toBe(object);
    expect(toCel(list)).toBe(list);
  });

  it.each([[() => 1], [Symbol('a')], [new (class Host {})()], [undefined], [new Set([1])]])(
    'toCel converts unsupported values to null (%s)',
    (value) => {
      expect(toCel(value)).toBe(null);
    },
  );
});

describe('CEL results', () => {
  it('CEL results are plain data', () => {
    expect(run('{"a": [1, 2u, 3.5, null, true], 1: b"x"}')).toEqual({
      a: [1, 2, 3.5, null, true],
      '1': Uint8Array.of(120),
    });
    expect(run('[timestamp("2026-01-31T12:00:00.25Z"), duration("90m"), duration("-1ms")]')).toEqual([
      '2026-01-31T12:00:00.25Z',
      '5400s',
      '-0.001s',
    ]);
    expect(run('[type(1), ip("::1"), cidr("10.0.0.0/8"), optional.of(2), optional.none()]')).toEqual([
      'int',
      '::1',
      '10.0.0.0/8',
      2,
      null,
    ]);
  });

  it('CEL results keep a key named __proto__ as an own key', () => {
    const result = run('{"__proto__": {"polluted": 1}}') as Record<string, unknown>;
    expect(Object.getPrototypeOf(result)).toBe(null);
    expect(Object.keys(result)).toEqual(['__proto__']);
    expect(({} as Record<string, unknown>)['polluted']).toBe(undefined);
  });
});
