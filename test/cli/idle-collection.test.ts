import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { collectWhileIdle } from '../../src/cli/idle-collection.ts';
import { until } from '../kit/until.ts';

const MIB = 2 ** 20;

/** Number of collections that were requested, not those that V8 starts by itself. */
let requested = 0;
const observer = new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    const { flags } = (entry as unknown as { readonly detail: { readonly flags: number } }).detail;
    if (flags === constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) requested += 1;
  }
});
beforeEach(() => {
  requested = 0;
  observer.observe({ entryTypes: ['gc'] });
});
afterEach(() => observer.disconnect());

/** Arrays of 1 MiB, which V8 allocates outside of the young generation. */
const arrays = (mebibytes: number): unknown[] =>
  Array.from({ length: mebibytes }, () => new Array(MIB / 8).fill(0.5));

test('a process collects garbage once after it has grown, when it is idle, and not while it is busy', async () => {
  const kept = [];
  const stop = collectWhileIdle({
    idleCheckInterval: 20,
    idleUtilization: 0.9,
    idleHeapGrowth: 16 * MIB,
    idleClosedResources: Number.POSITIVE_INFINITY,
  });
  try {
    kept.push(arrays(64));
    for (let turn = 0; turn < 10; turn += 1) {
      const end = performance.now() + 60;
      while (performance.now() < end);
      // Lets timers run without a wait, which another process could prolong.
      await new Promise(setImmediate);
    }
    const whileBusy = requested;
    // V8 may have collected more of what was there before than was added: adds until the growth counts.
    await until(
      () => {
        if (requested === 0) kept.push(arrays(8));
        return requested > 0;
      },
      10_000,
      50,
    );
    await delay(100);
    expect([whileBusy, requested]).toEqual([0, 1]);
    kept.push(arrays(64));
    await until(() => requested > 1);
    expect(kept.flat().length).toBeGreaterThan(0);
  } finally {
    stop();
  }
});

test('a process collects garbage after many connections have closed, also if little was allocated', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const clients = await Promise.all(
    Array.from({ length: 50 }, async () => {
      const socket = connect(port, '127.0.0.1');
      await once(socket, 'connect');
      return socket;
    }),
  );
  const stop = collectWhileIdle({
    idleCheckInterval: 20,
    idleUtilization: 0.9,
    idleHeapGrowth: Number.POSITIVE_INFINITY,
    idleClosedResources: 40,
  });
  try {
    await delay(200);
    const whileOpen = requested;
    for (const client of clients) client.destroy();
    await until(() => requested > 0);
    await delay(200);
    expect([whileOpen, requested]).toEqual([0, 1]);
  } finally {
    stop();
    server.close();
  }
});
