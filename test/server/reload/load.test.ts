import { readdirSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { chaos } from '../../kit/config.ts';
import { type EventReader, openEvents } from '../../kit/event-stream.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway } from '../../kit/gateway.ts';
import { openSession } from '../../kit/mcp.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';
import { routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

/** Starts `count` clients that send requests, each on its own connection, until the returned function is called. */
function load(
  count: number,
  ask: (agent: Agent) => Promise<void>,
): (() => Promise<void>) & { asked: number } {
  let isOn = true;
  const clients = Array.from({ length: count }, async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (; isOn; stop.asked += 1) await ask(agent);
    agent.destroy();
  });
  const stop = Object.assign(
    async (): Promise<void> => {
      isOn = false;
      await Promise.all(clients);
    },
    { asked: 0 },
  );
  return stop;
}

test('a reload applies to every request after its log line and to none before it', async () => {
  await using folder = await temporaryFolder();
  const config = (rule: string): string =>
    routesConfig([
      { name: 'a', policies: { authorization: { rules: [rule] }, directResponse: { body: 'x' } } },
    ]);
  await using gate = await gateway(config('true'), { folder: folder.path, live: 'watched' });
  const isLogged = (): boolean => gate.log.some((line) => line.includes('configuration reloaded'));
  const wrong: string[] = [];
  const counts = { before: 0, after: 0 };
  const stop = load(20, async (agent) => {
    const beganAfter = isLogged();
    const { status } = await send(gate.url, { agent });
    const endedBefore = !isLogged();
    if (beganAfter) counts.after += 1;
    if (endedBefore) counts.before += 1;
    if ((beganAfter && status !== 403) || (endedBefore && status !== 200))
      wrong.push(`${status} ${beganAfter} ${endedBefore}`);
  });
  await until(() => counts.before > 200);
  writeFileSync(join(folder.path, 'test.yaml'), config('false'));
  await until(() => counts.after > 200);
  await stop();
  expect(wrong).toEqual([]);
});

test('100 reloads under load lose no request, session or stream', { timeout: 60_000 }, async () => {
  await using folder = await temporaryFolder();
  await using upstream = await httpUpstream();
  await using other = await httpUpstream();
  await using remote = await mcpUpstream({});
  const config = (version: number): string =>
    routesConfig([
      // Changes at every reload, with its connections; at every fourth it is another service.
      {
        name: 'changing',
        matches: [{ path: { pathPrefix: '/changing' } }],
        policies: { responseHeaderModifier: { set: { 'x-version': String(version) } } },
        backends: [{ host: version % 4 === 0 ? other.address : upstream.address }],
      },
      {
        name: 'sessions',
        matches: [{ path: { pathPrefix: '/sessions' } }],
        policies: { authorization: { rules: [`${version} >= 0`] } },
        backends: [{ mcp: { targets: [{ name: 't', mcp: { host: remote.url } }, chaos('c')] } }],
      },
      // Its targets change: sessions keep the targets that they began with.
      {
        name: 'renamed',
        matches: [{ path: { pathPrefix: '/renamed' } }],
        backends: [{ mcp: { targets: [{ name: `t${version % 3}`, mcp: { host: remote.url } }] } }],
      },
    ]);
  const path = join(folder.path, 'test.yaml');
  await using gate = await gateway(config(0), {
    folder: folder.path,
    live: 'asked',
    level: 'warn,agctl=info',
  });
  const sessions = await Promise.all(
    ['sessions', 'renamed'].map((route) => openSession(`${gate.url}/${route}`)),
  );
  const streams: EventReader[] = await Promise.all(
    sessions.flatMap(({ url, id }) => [openEvents(url, { session: id })]),
  );
  const failures: unknown[] = [];
  const note = (what: string) => (error: unknown) => void failures.push(`${what}: ${error}`);
  const stopRequests = load(4, (agent) =>
    send(`${gate.url}/changing`, { agent }).then(({ status, text }) => {
      if (status !== 200 || text !== 'ok') failures.push(`${status} ${text}`);
    }, note('request')),
  );
  const stopCalls = load(1, () =>
    Promise.all(sessions.map((session) => session.request('tools/list'))).then((replies) => {
      for (const { status, text } of replies) if (status !== 200) failures.push(`call: ${status} ${text}`);
    }, note('call')),
  );
  const stopSessions = load(1, async () => {
    await openSession(`${gate.url}/renamed`)
      .then((session) => session.end())
      .catch(note('session'));
  });
  for (let version = 1; version <= 100; version += 1) {
    // Every twentieth configuration is invalid.
    writeFileSync(path, version % 20 === 0 ? `${config(version)}]` : config(version));
    const seen = stopRequests.asked;
    expect(await gate.live.reload()).toBe(version % 20 !== 0);
    await until(() => stopRequests.asked >= seen + 2);
  }
  await Promise.all([stopRequests(), stopCalls(), stopSessions()]);
  expect(failures).toEqual([]);
  expect(gate.accessLog.filter((line) => / http.status=(?!20)/.test(line))).toEqual([]);
  expect(streams.map(({ ended }) => ended)).toEqual([false, false]);
});

test('reloads leak no runtime, file descriptor, watcher or timer', { timeout: 60_000 }, async () => {
  await using folder = await temporaryFolder();
  await using remote = await mcpUpstream({});
  const config = (version: number): string =>
    routesConfig(
      [
        {
          name: 'same',
          matches: [{ path: { pathPrefix: '/same' } }],
          policies: { localRateLimit: [{ maxTokens: 1_000, fillInterval: '1s', key: 'source.address' }] },
          backends: [{ mcp: { targets: [{ name: 't', mcp: { host: remote.url } }] } }],
        },
        {
          name: 'other',
          backends: [{ mcp: { targets: [{ name: `t${version}`, mcp: { host: remote.url } }] } }],
        },
      ],
      { frontendPolicies: { accessLog: { add: { version: `"${version}"` } } } },
    );
  await using gate = await gateway(config(0), { folder: folder.path, live: 'watched', level: 'warn' });
  const left: WeakRef<object>[] = [];
  const resources = (): Record<string, number> => {
    const counts: Record<string, number> = { descriptors: readdirSync('/proc/self/fd').length };
    for (const name of process.getActiveResourcesInfo())
      if (/FS|Timeout|Immediate|Server/.test(name)) counts[name] = (counts[name] ?? 0) + 1;
    return counts;
  };
  const reload = async (version: number): Promise<void> => {
    writeFileSync(join(folder.path, 'test.yaml'), config(version));
    await gate.live.reload();
    const session = await openSession(`${gate.url}/other`);
    await session.end();
    const { runtime } = gate.live.served;
    for (const part of [runtime, runtime.components, runtime.source]) left.push(new WeakRef(part));
  };
  for (let version = 1; version <= 5; version += 1) await reload(version);
  const before = resources();
  for (let version = 6; version <= 60; version += 1) await reload(version);
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  // What serves; perhaps the one before, which the last request held; a source that parts which stay were compiled from.
  await until(() => {
    collect();
    return left.filter((each) => each.deref() !== undefined).length <= 7;
  });
  // Before idle connections to a target time out.
  await until(
    () => Object.entries(resources()).every(([name, count]) => count <= (before[name] ?? 0) + 2),
    3_000,
  );
});
