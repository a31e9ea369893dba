import type { LookupAddress } from 'node:dns';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { HostLookup } from '../../../src/server/transport/upstream/host-lookup.ts';

// A resolver whose answers the test controls; test/interop/dns has a real one.

type Answer = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void;

const ONE: LookupAddress[] = [{ address: '192.0.2.1', family: 4 }];
const TWO: LookupAddress[] = [{ address: '192.0.2.2', family: 4 }];
const lookupError = (code: string): NodeJS.ErrnoException => Object.assign(new Error(code), { code });

function scene(): { asked: Answer[]; find: (name?: string) => Promise<unknown> } {
  const asked: Answer[] = [];
  const { forConnect } = new HostLookup((_name, _options, callback) => void asked.push(callback));
  const find = (name = 'a.test'): Promise<unknown> =>
    new Promise((resolve) =>
      forConnect(name, { all: true }, (error, addresses) => resolve(error?.code ?? addresses)),
    );
  return { asked, find };
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

describe('HostLookup', () => {
  test('HostLookup shares a running lookup and starts a new one afterwards', async () => {
    const { asked, find } = scene();
    const found = [find(), find(), find()];
    expect(asked).toHaveLength(1);
    asked[0]?.(null, ONE);
    expect(await Promise.all(found)).toEqual([ONE, ONE, ONE]);
    const next = find();
    asked[1]?.(null, TWO);
    expect(await next).toEqual(TWO);
  });

  test('HostLookup returns a single address on request', async () => {
    const { forConnect } = new HostLookup((_name, _options, callback) => callback(null, ONE));
    const found = await new Promise((resolve) =>
      forConnect('a.test', {}, (error, address, family) => resolve([error, address, family])),
    );
    expect(found).toEqual([null, '192.0.2.1', 4]);
  });

  test('HostLookup resolves hosts independently of each other', async () => {
    const { asked, find } = scene();
    void find('hung.test');
    const found = find();
    asked[1]?.(null, ONE);
    expect(await found).toEqual(ONE);
  });

  test('HostLookup times out, fails immediately while that lookup runs and uses its late result', async () => {
    const { asked, find } = scene();
    const waiting = find();
    vi.advanceTimersByTime(LIMITS.hostLookupTimeout);
    expect(await waiting).toBe('LOOKUP_TIMEOUT');
    expect(await find()).toBe('LOOKUP_TIMEOUT');
    expect(asked).toHaveLength(1);
    asked[0]?.(null, ONE);
    const after = find();
    asked[1]?.(null, TWO);
    expect(await after).toEqual(TWO);
  });

  test('HostLookup reuses the last addresses while the resolver fails or hangs, but not after a negative answer', async () => {
    const { asked, find } = scene();
    const first = find();
    asked[0]?.(null, ONE);
    await first;

    const failing = find();
    asked[1]?.(lookupError('EAI_AGAIN'), []);
    expect(await failing).toEqual(ONE);
    // At once, while another lookup runs.
    expect(await find()).toEqual(ONE);
    expect(asked).toHaveLength(3);
    asked[2]?.(null, TWO);

    const silent = find();
    vi.advanceTimersByTime(LIMITS.hostLookupFallbackAfter);
    expect(await silent).toEqual(TWO);
    expect(await find()).toEqual(TWO);
    expect(asked).toHaveLength(4);
    asked[3]?.(lookupError('ENOTFOUND'), []);

    const gone = find();
    asked[4]?.(lookupError('ENOTFOUND'), []);
    expect(await gone).toBe('ENOTFOUND');
  });

  test('HostLookup remembers a bounded number of hosts', async () => {
    const asked: string[] = [];
    let fails = false;
    const { forConnect } = new HostLookup((name, _options, callback) => {
      asked.push(name);
      callback(fails ? lookupError('EAI_AGAIN') : null, fails ? [] : ONE);
    });
    const find = (name: string): Promise<unknown> =>
      new Promise((resolve) => forConnect(name, { all: true }, (error) => resolve(error?.code)));
    for (let count = 0; count <= LIMITS.cachedHostLookups; count += 1) await find(`h${count}.test`);
    fails = true;
    expect(await find(`h${LIMITS.cachedHostLookups}.test`)).toBeUndefined();
    expect(await find('h0.test')).toBe('EAI_AGAIN');
  });
});
