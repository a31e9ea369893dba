import { describe, expect, test } from 'vitest';
import type { RequestContext } from '../../../src/server/kernel/request/request-context.ts';
import { jwtClaims } from '../../../src/server/kernel/request/shared-slots.ts';
import { gateway } from '../../kit/gateway.ts';
import { worstLoopDelay } from '../../kit/loop-delay.ts';
import { answeringGateway, routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { watchedRoute } from '../../kit/watched.ts';

/** CPU time in ms: at most 70 on an idle core, several times that on a busy one. Unbounded work takes seconds here. */
const BOUND = 1_000;

/** Runs work three times and checks the worst delay of the best run, so that a pause of the machine does not fail. */
async function expectFreeLoop(what: string, work: () => Promise<unknown>): Promise<void> {
  const runs: number[] = [];
  for (let i = 0; i < 3; i += 1) runs.push(await worstLoopDelay(work));
  const delay = Math.min(...runs);
  console.info(`event loop blocked at most ${delay.toFixed(1)} ms: ${what}`);
  expect(delay).toBeLessThan(BOUND);
}

describe('authorization cost on claims of any size and shape', () => {
  const rules = ['"reader" in jwt.realm_access.roles'];
  const many = Array.from({ length: 100_000 }, (_, index) => `role-${index}`);

  test.each<[string, Record<string, unknown>]>([
    ['100,000 roles', { realm_access: { roles: many } }],
    ['100,000 roles in lists', { realm_access: { roles: many.map((name) => [name]) } }],
    ['null', { realm_access: null }],
    ['a string of 1 MB', { realm_access: { roles: 'x'.repeat(1_000_000) } }],
    ['absent', {}],
  ])('authorization rejects within bounded time when the claim is %s: 403', async (what, claims) => {
    const prepare = (ctx: RequestContext): void => {
      jwtClaims.set(ctx, claims);
    };
    await using route = await watchedRoute({ authorization: { rules } }, { prepare });
    await expectFreeLoop(`rule on ${what}`, async () => {
      expect(await send(route.url)).toMatchObject({ status: 403, text: 'authorization failed' });
    });
  });
});

describe('regular expressions', () => {
  const pattern = '^(a+)+$';
  const evil = `${'a'.repeat(15_000)}!`;

  test('regular expressions in rules take linear time', async () => {
    await using gate = await answeringGateway({
      authorization: { rules: [`request.headers["x-p"].matches("${pattern}")`] },
    });
    await expectFreeLoop('matches on a header of 15 kB', async () => {
      expect((await send(gate.url, { headers: { 'x-p': evil } })).status).toBe(403);
    });
    expect((await send(gate.url, { headers: { 'x-p': 'aaa' } })).status).toBe(200);
  });

  test('regular expressions sent by clients take bounded time', async () => {
    await using gate = await answeringGateway({
      authorization: { rules: ['request.headers["x-p"].matches(request.headers["x-re"])'] },
    });
    const refused = [pattern, '(((((a{10}){10}){10}){10}){10})', '('.repeat(3000), '[', '\\1', '(?=a)'];
    const patterns = [...refused, '(a?){500}a{500}', '(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)b', '[ab]*a[ab]{100}'];
    const statuses: Record<string, number> = {};
    await expectFreeLoop('patterns of clients', async () => {
      for (const re of patterns)
        statuses[re] = (await send(gate.url, { headers: { 'x-p': evil.slice(-4000), 'x-re': re } })).status;
    });
    for (const re of refused) expect(statuses[re], re).toBe(403);
  });

  test('regular expressions in routes take linear time, and invalid ones are load errors', async () => {
    const route = (regex: string) => ({ matches: [{ path: { regex } }], policies: { directResponse: {} } });
    await using gate = await gateway(routesConfig([route('/(a+)+')]));
    await expectFreeLoop('route on a path of 8 kB', async () => {
      expect((await send(`${gate.url}/${'a'.repeat(8000)}!`)).status).toBe(404);
    });
    await expect(gateway(routesConfig([route('/(a')]))).rejects.toThrow(
      'gateways.default.routes.0.matches.0.path.regex: invalid regular expression',
    );
    await expect(gateway(routesConfig([route('/(?=a)')]))).rejects.toThrow('invalid regular expression');
  });
});

describe('expensive expressions', () => {
  const list = '[1,2,3,4,5,6,7,8,9,10]';
  const nested = (depth: number): string =>
    depth === 0 ? 'true' : `${list}.all(x${depth}, ${nested(depth - 1)})`;
  const doubling = `${'["xxxxxxxxxxxxxxxx"]'}${'.map(s, s + s)'.repeat(40)}[0] == ""`;

  test.each([
    ['nested loops', nested(8)],
    ['a string that doubles forty times', doubling],
    [
      'loops over a body of 10,000 items',
      'json(request.body).all(a, json(request.body).all(b, a != b + 100000))',
    ],
    ['a list that grows in a loop', 'json(request.body).map(a, json(request.body).map(b, a)).size() > 0'],
    [
      'a body split into characters twice',
      'string(request.body).split("").map(c, string(request.body).split("")).size() > 0',
    ],
    [
      'a string replaced in a loop',
      'json(request.body).all(a, string(request.body).replace("1", "22").size() > 0)',
    ],
  ])('an expensive expression fails at its budget and the log states why: %s', async (what, rule) => {
    const body = JSON.stringify(Array.from({ length: 10_000 }, (_, index) => index));
    await using gate = await answeringGateway({ authorization: { rules: [rule] } });
    await expectFreeLoop(what, async () => {
      expect(await send(gate.url, { method: 'POST', body })).toMatchObject({ status: 403 });
    });
    expect((await gate.accessLine(1))['error.detail']).toMatch(/steps|items|longer than/);
  });

  test.each([
    ['5,000 terms', Array(5_000).fill('true').join(' && '), 'characters|parts'],
    ['1,200 short terms', Array(1_200).fill('true').join('&&'), 'parts'],
    ['2,000 brackets', `${'('.repeat(2_000)}true${')'.repeat(2_000)}`, 'levels'],
    ['2,000 lists', `${'['.repeat(2_000)}${']'.repeat(2_000)} == []`, 'levels'],
    ['4,000 negations', `${'!'.repeat(4_000)}true`, 'levels|parts'],
    ['a long list', `1 in [${Array(2_000).fill('1').join(',')}]`, 'parts'],
  ])('an oversized expression is a load error: %s', async (what, rule, words) => {
    await expectFreeLoop(`loading ${what}`, async () => {
      await expect(answeringGateway({ authorization: { rules: [rule] } })).rejects.toThrow(new RegExp(words));
    });
  });
});

const members = (count: number) => Array.from({ length: count }, (_, i) => `"k${i}":1`).join(',');

test('2 MB request bodies that are hard to parse are rejected within bounded time', async () => {
  await using gate = await answeringGateway({ authorization: { rules: ['json(request.body).ok'] } });
  const bodies: readonly (readonly [body: string, status: number])[] = [
    ['['.repeat(1_000_000) + ']'.repeat(1_000_000), 400],
    [`{${members(140_000)}}`, 400],
    [`{${members(30_000)}}`, 403],
    [`[${'1,'.repeat(900_000)}1]`, 403],
    [`{"ok":${'9'.repeat(1_900_000)}}`, 403],
    [`[${'{},'.repeat(600_000)}1]`, 403],
    // A duplicate key at the very end: names are compared.
    [`{${members(49_000)},"k48999":2}`, 400],
    [`[${Array.from({ length: 5_000 }, (_, i) => `{${members(8)},"x":${i}}`).join(',')},{"a":1,"a":2}]`, 400],
  ];
  for (const [index, [body, status]] of bodies.entries()) {
    await expectFreeLoop(`json() of hostile body ${index + 1}, ${body.length} bytes`, async () => {
      expect((await send(gate.url, { method: 'POST', body })).status).toBe(status);
    });
  }
});
