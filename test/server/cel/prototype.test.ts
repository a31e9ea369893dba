import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CelEvaluationError,
  compileExpression,
  HeadersView,
} from '../../../src/server/expressions/cel/expression.ts';
import { repeats } from '../../kit/thorough.ts';
import { reason, run } from './run.ts';

const INHERITED = [
  ...Object.getOwnPropertyNames(Object.prototype),
  ...Object.getOwnPropertyNames(Array.prototype),
  ...Object.getOwnPropertyNames(String.prototype),
  ...Object.getOwnPropertyNames(Map.prototype),
  ...Object.getOwnPropertyNames(Function.prototype),
].filter((name) => /^[a-zA-Z_]\w*$/.test(name));

const RECEIVERS = [
  'jwt',
  'jwt.list',
  'jwt.text',
  'jwt.claims',
  'request.headers',
  'json("{}")',
  '{"a": 1}',
  '[1]',
  '"text"',
  '1',
  'true',
  'null',
  'b"x"',
  'optional.of({})',
  'ip("::1")',
  'duration("1s")',
];

/** Receivers that have members, or may have. */
const MAPS = new Set([
  'jwt.claims',
  'request.headers',
  'json("{}")',
  '{"a": 1}',
  'optional.of({})',
  'jwt',
  'request',
]);

const variables = {
  jwt: { list: ['a'], text: 'x', claims: {}, host: Object.create({ inherited: 1 }) },
  request: { headers: new HeadersView(['a', 'b']) },
};

function isPlain(value: unknown): boolean {
  if (value === null || ['string', 'number', 'boolean'].includes(typeof value)) return true;
  if (value instanceof Uint8Array) return true;
  if (Array.isArray(value)) return value.every(isPlain);
  return (
    typeof value === 'object' && Object.getPrototypeOf(value) === null && Object.values(value).every(isPlain)
  );
}

describe('JavaScript prototypes in CEL', () => {
  it('CEL expressions cannot reach inherited JavaScript names as members', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...RECEIVERS),
        fc.constantFrom(...INHERITED),
        fc.constantFrom('dot', 'index', 'has'),
        (receiver, name, how) => {
          if (how === 'has') {
            const source = `has(${receiver}["${name}"])`;
            if (MAPS.has(receiver)) expect(run(source, variables)).toBe(false);
            else expect(reason(source, variables)).toBe('no_such_overload');
            return;
          }
          const source = how === 'dot' ? `${receiver}.${name}` : `${receiver}["${name}"]`;
          if (receiver.startsWith('optional')) expect(run(source, variables)).toBe(null);
          else expect(['no_such_key', 'no_such_overload']).toContain(reason(source, variables));
        },
      ),
      { numRuns: repeats(300, 5_000) },
    );
  });

  it.each([
    'jwt.__proto__',
    'jwt.constructor',
    '"".constructor',
    'request["__proto__"]',
    'jwt.host.inherited',
  ])('CEL %s fails with no_such_key', (source) => {
    expect(reason(source, variables)).toBe('no_such_key');
  });

  it('CEL json() keys named like inherited JavaScript names are ordinary keys', () => {
    fc.assert(
      fc.property(fc.constantFrom(...INHERITED, '__proto__'), fc.jsonValue(), (name, value) => {
        const body = `{${JSON.stringify(name)}: ${JSON.stringify(value)}}`;
        const found = run('json(body)[name]', { body, name });
        expect(JSON.parse(JSON.stringify(found))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it('CEL evaluation of random expressions gives plain data or a CelEvaluationError', () => {
    const part = fc.constantFrom(...RECEIVERS, 'x');
    const { expression } = fc.letrec<{ expression: string }>((tie) => ({
      expression: fc.oneof(
        { depthSize: 'small' },
        part,
        fc
          .tuple(tie('expression'), fc.constantFrom('+', '==', '<', 'in', '&&', '||', '%'), tie('expression'))
          .map((p) => `(${p.join(' ')})`),
        fc.tuple(tie('expression'), fc.constantFrom(...INHERITED)).map(([a, b]) => `(${a}).${b}`),
        fc.tuple(tie('expression'), tie('expression')).map(([a, b]) => `[${a}].map(x, ${b})`),
        fc.tuple(tie('expression'), tie('expression')).map(([a, b]) => `default(${a}, ${b})`),
        fc.tuple(tie('expression'), tie('expression')).map(([a, b]) => `(${a})[${b}]`),
        tie('expression').map((a) => `toJson(${a})`),
      ),
    }));
    fc.assert(
      fc.property(expression, (source) => {
        const compiled = compileExpression(source, ['jwt', 'request', 'x']);
        try {
          expect(isPlain(compiled.evaluate((root) => variables[root as 'jwt']))).toBe(true);
        } catch (error) {
          if (!(error instanceof CelEvaluationError)) throw error;
          expect(error.reason).not.toBe('internal');
        }
      }),
      { numRuns: repeats(300, 10_000) },
    );
  });
});
