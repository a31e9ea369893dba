import { afterAll, beforeAll, expect, test } from 'vitest';
import { fieldsOf } from '../../../src/server/expressions/cel/flattened.ts';
import type { TestGateway } from '../../kit/gateway.ts';
import { answeringGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { run } from '../cel/run.ts';

let server: TestGateway;
beforeAll(async () => {
  const add = {
    one: 'flatten(json(request.body))',
    all: 'flattenRecursive(json(request.body))',
    old: 'flatten_recursive([1, ["x"]])',
    plain: 'json(request.body)',
    none: 'flatten("text")',
  };
  server = await answeringGateway({}, { frontendPolicies: { accessLog: { add } } });
});
afterAll(() => server.close());

test('flatten makes a field of the access log for each member, and flattenRecursive for members of members', async () => {
  await send(server.url, { method: 'POST', body: '{"a":1,"b":{"c":[true,null]},"d":null}' });
  const line = await server.accessLine(1);
  const added = Object.fromEntries(
    Object.entries(line).filter(([name]) => /^(one|all|old|plain|none)/.test(name)),
  );
  expect(added).toEqual({
    'one.a': '1',
    'one.b': '{"c":[true,null]}',
    'all.a': '1',
    'all.b.c.0': 'true',
    'old.0': '1',
    'old.1.0': 'x',
    plain: '{"a":1,"b":{"c":[true,null]},"d":null}',
  });
});

test('a value of a client that only looks like a flattened one stays one field', () => {
  expect(fieldsOf('x', { $_meta_flatten_map: { status: '200' } })).toHaveLength(1);
});

test('flatten makes at most 256 fields', () => {
  const long = run('flatten(text.split(","))', { text: 'x,'.repeat(1000) });
  expect(fieldsOf('x', long)).toHaveLength(256);
});
