import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import type { RequestContext } from '../../src/server/kernel/request/request-context.ts';
import { OpenRequests } from '../../src/server/runtime/open-requests.ts';

const request = (name = ''): RequestContext =>
  ({ name, data: new Array(250).fill(0), slots: undefined }) as unknown as RequestContext;

test('OpenRequests removes requests anywhere in the list and keeps the order of the others', () => {
  const open = new OpenRequests();
  const [a, b, c, d, never] = ['a', 'b', 'c', 'd', 'never'].map(request) as [
    RequestContext,
    RequestContext,
    RequestContext,
    RequestContext,
    RequestContext,
  ];
  const is = (...left: RequestContext[]): void => {
    expect(open.size).toBe(left.length);
    expect([...open].every((ctx, index) => ctx === left[index])).toBe(true);
    expect([...open]).toHaveLength(left.length);
  };
  open.ended(never);
  is();
  for (const ctx of [a, b, c, d]) open.began(ctx);
  open.ended(never);
  is(a, b, c, d);
  open.ended(b);
  open.ended(b);
  is(a, c, d);
  open.ended(d);
  is(a, c);
  open.ended(a);
  is(c);
  open.began(a);
  is(c, a);
  open.ended(c);
  open.ended(a);
  is();
});

test('OpenRequests keeps ended requests out of the old generation', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const open = new OpenRequests();
  const running: RequestContext[] = [];
  const serve = (count: number): void => {
    for (let index = 0; index < count; index += 1) {
      const ctx = request();
      open.began(ctx);
      running.push(ctx);
      if (running.length > 32) open.ended(running.shift() as RequestContext);
    }
  };
  serve(1_000);
  collect();
  const before = oldSpace();
  // 210 MB; with a `Set` 37 MB of them reach the old generation.
  serve(100_000);
  expect(oldSpace() - before).toBeLessThan(5_000_000);
});

const oldSpace = (): number =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space')?.space_used_size ?? 0;
