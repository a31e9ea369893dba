import { gunzipSync } from 'node:zlib';
import { Profile } from 'pprof-format';
import { describe, expect, test } from 'vitest';
import { cpuParameters } from '../../src/admin/profile/duration.ts';
import { gateway } from '../kit/gateway.ts';
import { send } from '../kit/send.ts';
import { until } from '../kit/until.ts';
import { verifies } from '../kit/verifies.ts';

const YAML = JSON.stringify({
  config: { adminAddr: 'off', connectionTerminationDeadline: '100ms' },
  gateways: { a: { port: 0, routes: [{ policies: { directResponse: { body: 'ok' } } }] } },
});

/** Types of the values, and names of all functions. */
function read(body: Buffer): { types: string[]; functions: string[]; values: number[]; profile: Profile } {
  const profile = Profile.decode(body);
  const name = (index: number | bigint): string => profile.stringTable.strings[Number(index)] as string;
  return {
    types: profile.sampleType.map(({ type, unit }) => `${name(type)}/${name(unit)}`),
    functions: profile.function.map(({ name: index }) => name(index)),
    values: profile.sample.map(({ value }) => Number(value.at(-1))),
    profile,
  };
}

function burnForProfile(until: number): number {
  let sum = 0;
  while (performance.now() < until) sum += Math.sqrt(sum + 1);
  return sum;
}

describe('CPU profiles', () => {
  verifies('gateway.admin.cpu', 'a CPU profile in pprof format shows where the time was spent', async () => {
    await using running = await gateway(YAML, { admin: true });
    const asked = send(`${running.admin}/debug/pprof/profile?seconds=1&frequency=1000`);
    let done = false;
    void asked.finally(() => {
      done = true;
    });
    await until(() => {
      burnForProfile(performance.now() + 20);
      return done;
    });
    const { status, body } = await asked;
    const { types, functions, values, profile } = read(body);
    expect([status, types]).toEqual([200, ['samples/count', 'cpu/nanoseconds']]);
    expect(functions).toContain('burnForProfile');
    expect(functions).not.toContain('(idle)');
    const total = values.reduce((a, b) => a + b, 0);
    expect(total).toBeGreaterThan(1e8);
    expect(total).toBeLessThan(1e10);
    expect(Number(profile.durationNanos)).toBeGreaterThan(0.9e9);
    expect(Number(profile.period)).toBe(1e6);
  });

  verifies(
    ['gateway.admin.cpu.query', 'gateway.limits.profile-duration', 'gateway.limits.profile-frequency'],
    'CPU profile parameters out of range fall back to the defaults',
    () => {
      const seconds = ['1', '300', '0', '301', 'abc', '-1', '', '1.5', undefined, '+7', '1e2'];
      expect(seconds.map((text) => cpuParameters(text, undefined).seconds)).toEqual([
        1, 300, 10, 10, 10, 10, 10, 10, 10, 7, 10,
      ]);
      const frequencies = ['1', '1000', '0', '1001', 'x', undefined];
      expect(frequencies.map((text) => cpuParameters(undefined, text).frequency)).toEqual([
        1, 1000, 100, 100, 100, 100,
      ]);
    },
  );

  test('only one CPU profile runs at a time, and a client disconnect ends its own', async () => {
    // Starting a profile blocks the event loop while functions are listed.
    const limits = { operatorServerHeadersTimeout: 600_000, adminRequestTimeout: 600_000 };
    await using running = await gateway(YAML, { admin: true, limits });
    const leave = new AbortController();
    const url = `${running.admin}/debug/pprof/profile`;
    const ask = (seconds: string): Promise<number | string> =>
      fetch(`${url}?seconds=${seconds}`, { signal: leave.signal }).then(
        ({ status }) => status,
        () => 'left',
      );
    const asked = [ask('abc'), ask('300')];
    expect(await Promise.race(asked)).toBe(409);
    leave.abort();
    expect((await Promise.all(asked)).toSorted()).toEqual([409, 'left']);
    await until(async () => (await send(`${url}?seconds=1`)).status === 200);
  });

  verifies('gateway.errors.profile', 'CPU profiles are 404 on other operating systems', async () => {
    await using running = await gateway(YAML, { admin: true });
    const platform = Object.getOwnPropertyDescriptor(process, 'platform') as PropertyDescriptor;
    Object.defineProperty(process, 'platform', { ...platform, value: 'darwin' });
    try {
      const { status, text } = await send(`${running.admin}/debug/pprof/profile`);
      expect([status, text]).toEqual([404, '']);
    } finally {
      Object.defineProperty(process, 'platform', platform);
    }
  });
});

function keepForProfile(count: number): object[] {
  return Array.from({ length: count }, (_, index) => ({ index, text: `kept-value-${index}` }));
}

function dropForProfile(count: number): number {
  return Array.from({ length: count }, (_, index) => ({ index, text: `dropped-value-${index}` })).length;
}

describe('heap profiles', () => {
  verifies(
    'gateway.admin.heap',
    'a heap profile shows where live memory was allocated and contains no values of it',
    async () => {
      await using running = await gateway(YAML, { admin: true });
      const asked = send(`${running.admin}/debug/pprof/heap?seconds=1`);
      const kept: object[] = [];
      let done = false;
      void asked.finally(() => {
        done = true;
      });
      // Busy all the time, so that the sampler sees it.
      await until(() => {
        kept.push(...keepForProfile(20_000));
        dropForProfile(20_000);
        return done;
      });
      const { status, body } = await asked;
      const raw = gunzipSync(body);
      const { types, functions, values, profile } = read(raw);
      expect([status, types]).toEqual([200, ['samples/count', 'inuse_space/bytes']]);
      expect(functions).toContain('keepForProfile');
      expect(functions).not.toContain('dropForProfile');
      expect(values.reduce((a, b) => a + b, 0)).toBeGreaterThan(1_000_000);
      expect(Number(profile.durationNanos)).toBeGreaterThan(0.9e9);
      expect(raw.includes('kept-value-')).toBe(false);
      expect(kept.length).toBeGreaterThan(0);
    },
  );

  test('only one heap profile runs at a time, and a client disconnect ends its own', async () => {
    await using running = await gateway(YAML, { admin: true });
    const url = `${running.admin}/debug/pprof/heap`;
    const leave = new AbortController();
    const first = fetch(`${url}?seconds=300`, { signal: leave.signal }).catch(() => 'left');
    await until(async () => (await send(`${url}?seconds=1`)).status === 409);
    leave.abort();
    expect(await first).toBe('left');
    await until(async () => (await send(`${url}?seconds=1`)).status === 200);
  });
});
