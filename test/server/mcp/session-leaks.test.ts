import { createHook } from 'node:async_hooks';
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { boundsInUse } from '../../kit/bounds-in-use.ts';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { openEvents } from '../../kit/event-stream.ts';
import { gateway } from '../../kit/gateway.ts';
import { openSession, post } from '../../kit/mcp.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';
import { freePort } from '../../kit/ports.ts';
import { serve } from '../../kit/process.ts';
import { until } from '../../kit/until.ts';

// `npm run bench mcp-churn -- --sessions 10000 --target http` does the same with more sessions.

/** What one session in 20 leaves behind is more than the tolerance below. */
const SESSIONS = 50;

const CONCURRENT = 20;
/** The access log and the event loop may each hold a descriptor more or less at the time of counting. */
const FD_TOLERANCE = 2;

const shared = (name: string) => ({ name, stdio: { ...chaos(name).stdio, shared: true } });

/** Opens a session with a GET stream, uses and deletes it. */
async function useSession(url: string, tool: string): Promise<void> {
  const session = await openSession(url);
  const stream = await openEvents(url, { session: session.id });
  await session.request('tools/list');
  const { result } = await session.request('tools/call', { name: tool, arguments: {} });
  if (result.content[0].type !== 'text') throw new Error(JSON.stringify(result));
  await session.end();
  await stream.untilEnd();
}

async function statelessRequest(url: string, tool: string): Promise<void> {
  const params = { name: tool, arguments: {} };
  const { result } = await post(url, { jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  if (result.content[0].type !== 'text') throw new Error(JSON.stringify(result));
}

async function times(count: number, run: () => Promise<void>): Promise<void> {
  let left = count;
  const worker = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await run();
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT }, worker));
}

/** Child processes of a process, without zombies. */
function children(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const [state, parent] = readFileSync(`/proc/${name}/stat`, 'utf8')
          .replace(/^.*\) /, '')
          .split(' ');
        return Number(parent) === pid && state !== 'Z' ? [Number(name)] : [];
      } catch {
        return [];
      }
    });
}

const NOTHING = {
  'mcp.sessions': 0,
  'mcp.children': 0,
  'mcp.session.inFlight': 0,
  'mcp.session.unanswered': 0,
  'mcp.session.queuedMessages': 0,
};

describe.runIf(process.platform === 'linux')('many sessions', () => {
  test.each([
    ['a process of their own', 8, () => chaos('a'), 'echo', {}, useSession],
    ['one shared process', SESSIONS, () => shared('a'), 'echo', {}, useSession],
    ['an HTTP server', SESSIONS, (host: string) => ({ name: 'a', mcp: { host } }), 'say', {}, useSession],
    [
      'an HTTP server without sessions',
      SESSIONS,
      (host: string) => ({ name: 'a', mcp: { host } }),
      'say',
      { statefulMode: 'stateless' },
      statelessRequest,
    ],
  ])(
    'many sessions at %s leave no process, descriptor or entry behind',
    async (_, count, target, tool, backend, use) => {
      await using up = await mcpUpstream();
      const adminPort = await freePort();
      const yaml = mcpConfig([target(up.url)], { backend, config: { adminAddr: `127.0.0.1:${adminPort}` } });
      await using gate = await serve(yaml, { env: { ADMIN_ADDR: undefined } });
      const run = (): Promise<void> => use(`${gate.url}/mcp`, tool);
      // Code and pools that are initialized once are no leak.
      await times(Math.min(CONCURRENT, count), run);
      const admin = `http://127.0.0.1:${adminPort}`;
      const isIdle = async (): Promise<boolean> => {
        const used = await boundsInUse({ admin });
        const isFree = Object.entries(NOTHING).every(([name, none]) => used[name] === none);
        return isFree && children(gate.pid).length === 0;
      };
      /** Descriptors except those of connections that are kept alive, from clients and to the target. */
      const descriptors = async (): Promise<number> => {
        up.closeIdle();
        const used = await boundsInUse({ admin });
        const open = readdirSync(`/proc/${gate.pid}/fd`).length;
        return open - (used['connections'] ?? 0) - (used['admin.connections'] ?? 0);
      };
      await until(isIdle, 20_000, 50);
      let before = Number.POSITIVE_INFINITY;
      await until(
        async () => {
          const earlier = before;
          before = await descriptors();
          return before === earlier;
        },
        20_000,
        200,
      );
      await times(count, run);
      await until(isIdle, 20_000, 50);
      await until(async () => (await descriptors()) <= before + FD_TOLERANCE, 20_000, 100);
      expect(await boundsInUse({ admin })).toMatchObject(NOTHING);
      expect(up.sessions.size).toBe(0);
    },
  );
});

describe('timers of sessions', () => {
  // The text of a stack is made when it is first read: not for timers that are gone by then.
  const alive = new Map<number, Error>();
  const hook = createHook({
    init: (id, type) => {
      if (type === 'Timeout') alive.set(id, new Error('started'));
    },
    destroy: (id) => void alive.delete(id),
  });
  beforeAll(() => void hook.enable());
  afterAll(() => void hook.disable());

  /** Timers that code of the gateway has started. */
  const own = (): string[] =>
    [...alive.values()].map(({ stack = '' }) => stack).filter((stack) => stack.includes('/src/server/mcp/'));

  test.each([
    ['shared', () => shared('a'), 'echo'],
    ['HTTP', (host: string) => ({ name: 'a', mcp: { host } }), 'say'],
  ])('sessions at a %s target leave no timer behind', async (_, target, tool) => {
    await using up = await mcpUpstream();
    await using gate = await gateway(mcpConfig([target(up.url)]));
    await useSession(`${gate.url}/mcp`, tool);
    // A few may be of something else, such as a gateway of an earlier file of this process.
    const before = own().length;
    await times(20, () => useSession(`${gate.url}/mcp`, tool));
    const left = (): string[] => (own().length <= before ? [] : own());
    await expect.poll(left, { timeout: 20_000, interval: 20 }).toEqual([]);
  });
});
