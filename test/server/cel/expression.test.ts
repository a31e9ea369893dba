import { describe, expect, it } from 'vitest';
import {
  CelEvaluationError,
  CelStruct,
  compileExpression,
  HeadersView,
  isTrue,
} from '../../../src/server/expressions/cel/expression.ts';
import { failure, reason, run } from './run.ts';

const PLACE = ['request', 'response', 'jwt', 'source', 'llmRequest'];

describe('references of an expression', () => {
  it.each([
    ['request.headers["x"] == "a" && jwt.sub == "b"', ['jwt', 'request']],
    ['[1, 2].map(request, request + 1)', []],
    ['{"request": 1}', []],
    ['has(jwt.sub)', ['jwt']],
    ['variables()', ['jwt', 'llmRequest', 'request', 'response', 'source']],
  ])('expression %s references the roots %j', (source, roots) => {
    expect([...compileExpression(source, PLACE).roots].sort()).toEqual(roots);
  });

  it.each([
    ['request.headers["x"]', 'request.headers', true],
    ['request.headers["x"]', 'request.body', false],
    ['request["body"]', 'request.body', true],
    ['request[jwt.key]', 'request.body', true],
    ['toJson(request)', 'request.body', true],
    ['request.with(r, r.method)', 'request.body', true],
    ['variables()', 'response.body', true],
    ['json(response.body).a', 'response.body', true],
    ['json(response.body).a', 'request.body', false],
    ['has(request.body)', 'request.body', true],
    ['request.?body.orValue("")', 'request.body', true],
    ['request.bodyPrefix == ""', 'request.body', false],
    ['[1].exists(request, request == 1)', 'request.body', false],
    ['request.body.size() > 3', 'request', true],
  ])('expression.reads: %s reads %s: %s', (source, path, expected) => {
    expect(compileExpression(source, PLACE).reads(path)).toBe(expected);
  });
});

describe('evaluation', () => {
  it('evaluation resolves each reached root once and no other', () => {
    const asked: string[] = [];
    const expression = compileExpression('jwt.a == 1 && jwt.b == 2 || source.c == 3', PLACE);
    expression.evaluate((root) => {
      asked.push(root);
      return { a: 1, b: 2 };
    });
    expect(asked).toEqual(['jwt']);
  });

  it('evaluation reads only the named members of a struct', () => {
    const asked: string[] = [];
    class Request extends CelStruct {
      field(name: string): unknown {
        asked.push(name);
        return name === 'headers' ? new HeadersView(['X-User', 'a']) : undefined;
      }
      fields(): string[] {
        return ['headers', 'body'];
      }
    }
    expect(run('request.headers["x-user"]', { request: new Request() })).toBe('a');
    expect(asked).toEqual(['headers']);
    expect(run('toJson(request)', { request: new Request() })).toBe('{"headers":{"x-user":"a"}}');
  });

  it.each([null, undefined])('evaluation treats a root that is %s as null', (jwt) => {
    expect(run('jwt == null', { jwt })).toBe(true);
    expect(run('has(jwt.sub)', { jwt })).toBe(false);
    expect(run('default(jwt.sub, "nobody")', { jwt })).toBe('nobody');
    expect(reason('jwt.sub', { jwt })).toBe('no_such_key');
  });

  it('evaluation reads integral JSON numbers as int and returns them as numbers', () => {
    const llmRequest = JSON.parse(
      '{"max_tokens": 2000, "top_p": 0.5, "big": 12345678901234567890, "list": [1, [2]]}',
    );
    expect(run('llmRequest.max_tokens % 7 + 1', { llmRequest })).toBe(6);
    expect(run('type(llmRequest.top_p) == double', { llmRequest })).toBe(true);
    expect(run('llmRequest.list[0] + llmRequest.list[1][0]', { llmRequest })).toBe(3);
    expect(run('llmRequest', { llmRequest })).toEqual(llmRequest);
  });

  it('evaluation returns integers beyond the safe range as strings', () => {
    expect(run('9007199254740991')).toBe(9007199254740991);
    expect(run('9007199254740993')).toBe('9007199254740993');
    expect(run('18446744073709551615u')).toBe('18446744073709551615');
  });

  it('evaluation restores Error.stackTraceLimit, also after a failure', () => {
    const before = Error.stackTraceLimit;
    expect(reason('jwt.sub', { jwt: {} })).toBe('no_such_key');
    expect(Error.stackTraceLimit).toBe(before);
    expect(before).toBeGreaterThan(0);
  });

  it('evaluation gives an expression nested in a variable resolver its own budget', () => {
    const list = Array.from({ length: 9_000 }, (_, index) => index);
    // About 70 % of a budget, so that two evaluations exceed one budget.
    const costly = compileExpression('source.list.map(x, x * 2 + x * 3 > 0).size()', PLACE);
    const evaluateBoth = () =>
      costly.evaluate(() => ({ list: list.slice((costly.evaluate(() => ({ list })) as number) - 9_000) }));
    expect(evaluateBoth()).toBe(9_000);
    const twice = compileExpression(
      'source.list.map(x, x * 2 + x * 3 > 0).size() + source.list.map(x, x * 2 + x * 3 > 0).size()',
      PLACE,
    );
    expect(() => twice.evaluate(() => ({ list }))).toThrow(CelEvaluationError);
  });

  it('evaluation wraps host failures, which default() and || do not hide', () => {
    const cause = new Error('database password is hunter2');
    const expression = compileExpression('default(jwt.sub, "x") == "x" || true', PLACE);
    const evaluate = () =>
      expression.evaluate(() => {
        throw cause;
      });
    expect(evaluate).toThrow(CelEvaluationError);
    expect(evaluate).toThrow('the expression could not be evaluated');
  });

  it.each([
    'int(jwt.secret)',
    'double(jwt.secret)',
    'bool(jwt.secret)',
    'timestamp(jwt.secret)',
    'duration(jwt.secret)',
    'ip(jwt.secret)',
    'cidr(jwt.secret)',
    'json(jwt.secret)',
    'base64.decode(jwt.secret)',
    'unvalidatedJwtPayload(jwt.secret)',
    '"x".matches(jwt.secret)',
    'jwt[jwt.secret]',
    '{"a": 1}[jwt.secret]',
    '[1][jwt.number]',
    'jwt.number + 9223372036854775807',
    'jwt.secret + 1',
    'jwt.secret < 1',
    'fail(jwt.secret)',
    'jwt.secret ? 1 : 2',
    'jwt.secret && true',
    '-jwt.secret',
    'jwt.secret.nope',
    'jwt.list.map(x, x + jwt.number)',
    'jwt.secret.substring(jwt.number)',
    'math.abs(jwt.secret)',
    'optional.none().value()',
  ])('evaluation error of %s does not quote a value', (source) => {
    const secret = 'ht-(tp-SECRET%%';
    const error = failure(source, { jwt: { secret, number: 4711, list: [secret] } });
    expect(error.message).not.toMatch(/SECRET|4711/);
    expect(error.message.length).toBeGreaterThan(5);
  });
});

describe('evaluation as a boolean', () => {
  const holds = (source: string): boolean => isTrue(compileExpression(source, PLACE), () => null);

  it('evaluation as a boolean is true only for the value true', () => {
    expect(holds('1 == 1')).toBe(true);
    for (const source of ['false', '1', '"true"', 'null', '[true]']) expect(holds(source)).toBe(false);
  });

  it('evaluation as a boolean throws when the expression fails', () => {
    expect(() => holds('jwt.sub == "a"')).toThrow(CelEvaluationError);
  });
});
