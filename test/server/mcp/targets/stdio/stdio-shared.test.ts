import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../../../kit/config.ts';
import { openEvents } from '../../../../kit/event-stream.ts';
import { temporaryFolder } from '../../../../kit/folder.ts';
import { gateway, type TestGateway } from '../../../../kit/gateway.ts';
import { isAlive } from '../../../../kit/is-alive.ts';
import { INITIALIZE, type Json, type McpSession, openSession, post } from '../../../../kit/mcp.ts';
import { until } from '../../../../kit/until.ts';

const { path: folder, remove } = await temporaryFolder();
afterAll(remove);
let files = 0;
const newFile = (): string => join(folder, `file-${++files}`);

const shared = (name: string, ...flags: string[]) => {
  const { stdio } = chaos(name, ...flags);
  return { name, stdio: { ...stdio, shared: true } };
};

const start = (targets: readonly object[], config: object = {}): Promise<TestGateway> =>
  gateway(mcpConfig(targets, { config }));

const open = (gate: TestGateway): Promise<McpSession> => openSession(`${gate.url}/mcp`);

const call = (name: string, args: object = {}, meta?: object) => ({
  method: 'tools/call',
  params: { name, arguments: args, ...(meta && { _meta: meta }) },
});

const textOf = async (session: McpSession, name: string): Promise<string> =>
  (await session.request('tools/call', { name })).result.content[0].text;

const pidOf = async (session: McpSession): Promise<number> => Number(await textOf(session, 'pid'));

/** What the process has read, parsed. */
const receivedBy = async (session: McpSession): Promise<Json[]> =>
  JSON.parse(await textOf(session, 'received')).map((line: string) => JSON.parse(line));

const starts = (mark: string): number => readFileSync(mark, 'utf8').trim().split('\n').length;

describe('a shared stdio target', () => {
  test('a shared stdio target is one process for all sessions, initialized once by the gateway itself', async () => {
    await using gate = await start([shared('a', '--resources=file:///1')], { mcp: { maxChildren: 1 } });
    const [one, two] = await Promise.all([open(gate), open(gate)]);
    expect(await pidOf(one)).toBe(await pidOf(two));
    const received = await receivedBy(one);
    const initializes = received.filter(({ method }) => method === 'initialize');
    expect(initializes.map(({ params }) => [params.clientInfo.name, params.capabilities])).toEqual([
      ['agctl', {}],
    ]);
    expect(received.filter(({ method }) => method === 'notifications/initialized')).toHaveLength(1);
    for (const { initialize } of [one, two]) {
      expect(initialize.result.serverInfo).toEqual({ name: 'a', version: '1' });
      // The log level would apply to all sessions.
      expect(initialize.result.capabilities).toEqual({
        tools: { listChanged: true },
        resources: { subscribe: true },
      });
    }
  });

  test('a shared stdio target works beside one process per session, with prefixed names', async () => {
    await using gate = await start([shared('a'), chaos('b')]);
    const [one, two] = [await open(gate), await open(gate)];
    expect(await textOf(one, 'a_pid')).toBe(await textOf(two, 'a_pid'));
    expect(await textOf(one, 'b_pid')).not.toBe(await textOf(two, 'b_pid'));
    const { result } = await two.request('tools/list');
    expect(result.tools.map(({ name }: Json) => name)).toEqual(['a_echo', 'b_echo']);
  });

  test('a shared stdio target answers each client in a protocol revision that the client requested', async () => {
    await using gate = await start([shared('a')]);
    const versionFor = async (protocolVersion: string): Promise<string> => {
      const params = { ...INITIALIZE.params, protocolVersion };
      return (await post(`${gate.url}/mcp`, { ...INITIALIZE, params })).result.protocolVersion;
    };
    expect(await versionFor('2025-11-25')).toBe('2025-11-25');
    expect(await versionFor('2024-11-05')).toBe('2024-11-05');
  });

  test("a shared stdio target's responses and progress reach the session that asked, with equal ids and tokens", async () => {
    await using gate = await start([shared('a')]);
    const sessions = await Promise.all([open(gate), open(gate), open(gate)]);
    const replies = await Promise.all(
      sessions.map((session, index) =>
        session.send({ id: 7, ...call('progress', { steps: index + 1 }, { progressToken: 'same' }) }),
      ),
    );
    for (const [index, { messages }] of replies.entries()) {
      const steps = messages.slice(0, -1);
      expect(steps.map(({ params }) => [params.progressToken, params.progress])).toEqual(
        Array.from({ length: index + 1 }, (_, step) => ['same', step + 1]),
      );
      expect(messages.at(-1)).toMatchObject({ id: 7, result: { content: [{ text: 'done' }] } });
    }
  });

  test('a shared stdio target receives the cancellation of a call, and the same id of another session continues', async () => {
    await using gate = await start([shared('a')]);
    const [one, two] = [await open(gate), await open(gate)];
    const cancelled = one.send({ id: 5, ...call('hang') });
    const kept = two.send({ id: 5, ...call('later', { ms: 500, message: 'kept' }) });
    const calls = async (name: string): Promise<Json[]> =>
      (await receivedBy(one)).filter(({ params }) => params?.name === name);
    await until(async () => (await calls('hang')).length === 1 && (await calls('later')).length === 1);
    await one.send({ method: 'notifications/cancelled', params: { requestId: 5, reason: 'enough' } });
    await cancelled;
    expect((await kept).result.content[0].text).toBe('kept');
    const received = await receivedBy(one);
    const [hanging] = received.filter(({ params }) => params?.name === 'hang');
    expect(
      received.filter(({ method }) => method === 'notifications/cancelled').map(({ params }) => params),
    ).toEqual([{ requestId: hanging.id, reason: 'enough' }]);
  });

  test('a shared stdio target ends with the last session, and receives cancellations of a session that ends earlier', async () => {
    await using gate = await start([shared('a')]);
    const [one, two] = [await open(gate), await open(gate)];
    const pid = await pidOf(one);
    const hanging = one.send({ id: 5, ...call('hang') });
    await until(async () => (await receivedBy(two)).some(({ params }) => params?.name === 'hang'));
    await one.end();
    expect((await hanging).error.message).toContain('the session ended');
    await until(async () =>
      (await receivedBy(two)).some(({ method }) => method === 'notifications/cancelled'),
    );
    expect(isAlive(pid)).toBe(true);
    await two.end();
    await until(() => !isAlive(pid));
    const three = await open(gate);
    expect(await pidOf(three)).not.toBe(pid);
  });
});

describe('server messages of a shared stdio target', () => {
  test('list_changed notifications of a shared stdio target reach all sessions', async () => {
    await using gate = await start([shared('a')]);
    const [one, two] = [await open(gate), await open(gate)];
    await using ofOne = await openEvents(one.url, { session: one.id });
    await using ofTwo = await openEvents(two.url, { session: two.id });
    await one.send({ id: 1, ...call('notify', { method: 'notifications/tools/list_changed' }) });
    for (const stream of [ofOne, ofTwo])
      await stream.next(({ method }) => method === 'notifications/tools/list_changed');
  });

  test('resource updates of a shared stdio target reach only the sessions that subscribed', async () => {
    await using gate = await start([shared('a', '--resources=file:///1')]);
    const [one, two, three] = [await open(gate), await open(gate), await open(gate)];
    const streams = await Promise.all(
      [one, two, three].map((session) => openEvents(session.url, { session: session.id })),
    );
    const uri = 'file:///1';
    const notify = (to: string) =>
      three.request('tools/call', {
        name: 'notify',
        arguments: { method: 'notifications/resources/updated', params: { uri: to } },
      });
    const seen = () => streams.map(({ messages }) => messages.map(({ params }) => params.uri));
    const end = { method: 'notifications/tools/list_changed', params: { uri: 'end' } };
    /** Sends a notification to all sessions, after all earlier messages. */
    const settled = async (count: number): Promise<void> => {
      await three.request('tools/call', { name: 'notify', arguments: end });
      await until(() => seen().every((uris) => uris.filter((each) => each === 'end').length === count));
    };
    await one.request('resources/subscribe', { uri });
    await two.request('resources/subscribe', { uri });
    await settled(1);
    // The target sends a resource update at every subscription.
    expect(seen()).toEqual([[uri, uri, 'end'], [uri, 'end'], ['end']]);
    expect((await one.request('resources/unsubscribe', { uri })).result).toEqual({});
    await notify(`${uri}/part`);
    await notify(`${uri}23`);
    await settled(2);
    expect(seen().map((uris) => uris.slice(uris.indexOf('end') + 1))).toEqual([
      ['end'],
      [`${uri}/part`, 'end'],
      ['end'],
    ]);
    const unsubscribes = async () =>
      (await receivedBy(three)).filter(({ method }) => method === 'resources/unsubscribe').length;
    expect(await unsubscribes()).toBe(0);
    await two.end();
    await until(async () => (await unsubscribes()) === 1);
    for (const stream of streams) stream.close();
  });

  test("log messages of a shared stdio target, which could be about another session's call, reach no client", async () => {
    await using gate = await start([shared('a')]);
    const [one, two] = [await open(gate), await open(gate)];
    const params = { level: 'info', data: 'of one' };
    const { messages } = await one.send({
      id: 1,
      ...call('notify', { method: 'notifications/message', params }),
    });
    expect(messages).toHaveLength(1);
    await using stream = await openEvents(two.url, { session: two.id });
    await one.send({ id: 2, ...call('notify', { method: 'notifications/tools/list_changed' }) });
    await stream.next(({ method }) => method === 'notifications/tools/list_changed');
    expect(stream.messages).toHaveLength(1);
  });

  test('server requests of a shared stdio target are rejected immediately, and its pings are answered', async () => {
    await using gate = await start([shared('a')]);
    const one = await open(gate);
    const { messages } = await one.send({
      id: 1,
      ...call('ask', { method: 'sampling/createMessage', params: {} }),
    });
    expect(messages).toHaveLength(1);
    expect(JSON.parse(messages[0].result.content[0].text).error).toEqual({
      code: -32601,
      message: 'sampling/createMessage: this server is shared by several clients',
    });
    const ping = await one.send({ id: 2, ...call('ask', { method: 'ping' }) });
    expect(ping.result.content[0].text).toBe('{}');
  });

  test.each(['logging/setLevel', 'tasks/list'])(
    '%s to a shared stdio target is rejected because it affects all sessions',
    async (method) => {
      await using gate = await start([shared('a')]);
      const one = await open(gate);
      const { error } = await one.request(method, { level: 'debug' });
      expect(error).toEqual({ code: -32601, message: `method not found: ${method} (the server is shared)` });
    },
  );
});

describe('a shared stdio target that exits', () => {
  test('a shared stdio target that exits fails the calls of all sessions immediately and is restarted once for all', async () => {
    const mark = newFile();
    await using gate = await start([shared('a', `--mark=${mark}`)]);
    const [one, two] = [await open(gate), await open(gate)];
    const hanging = two.send({ id: 5, ...call('hang') });
    await until(async () => (await receivedBy(one)).some(({ params }) => params?.name === 'hang'));
    const { error } = await one.request('tools/call', { name: 'die' });
    expect(error.message).toBe('target "a" exited with code 3');
    expect((await hanging).error.message).toBe('target "a" exited with code 3');
    await until(async () => (await one.request('ping')).result !== undefined);
    await until(async () => (await two.request('ping')).result !== undefined);
    expect(await pidOf(one)).toBe(await pidOf(two));
    expect(starts(mark)).toBe(2);
  });

  test('a restarted shared stdio target gets the subscriptions of the sessions that use it again', async () => {
    await using gate = await start([shared('a', '--resources=file:///1,file:///2')]);
    const [one, two] = [await open(gate), await open(gate)];
    await one.request('resources/subscribe', { uri: 'file:///1' });
    await two.request('resources/subscribe', { uri: 'file:///2' });
    await one.request('tools/call', { name: 'die' });
    for (const session of [one, two])
      await until(async () => (await session.request('ping')).result !== undefined);
    const subscribed = async (): Promise<string[]> =>
      (await receivedBy(one))
        .filter(({ method }) => method === 'resources/subscribe')
        .map(({ params }) => params.uri)
        .sort();
    await until(async () => (await subscribed()).length === 2);
    expect(await subscribed()).toEqual(['file:///1', 'file:///2']);
    await using stream = await openEvents(two.url, { session: two.id });
    await one.request('tools/call', {
      name: 'notify',
      arguments: { method: 'notifications/resources/updated', params: { uri: 'file:///2' } },
    });
    await stream.next(({ params }) => params?.uri === 'file:///2');
  });

  test('a shared stdio target that exits while it starts is not started once per session', async () => {
    const mark = newFile();
    await using gate = await start([shared('a', `--mark=${mark}`, '--exit=7')]);
    const replies = await Promise.all(Array.from({ length: 10 }, () => post(`${gate.url}/mcp`, INITIALIZE)));
    for (const { error } of replies)
      expect(error.message).toBe('failed to create session: target "a" exited with code 7');
    expect(starts(mark)).toBeLessThanOrEqual(3);
  });

  test('a shared stdio target that is slow to start is started once for all waiting sessions', async () => {
    const [mark, ready] = [newFile(), newFile()];
    await using gate = await start([shared('a', `--mark=${mark}`, `--starts-with=${ready}`)]);
    const sessions = [open(gate), open(gate)];
    await until(() => existsSync(mark));
    writeFileSync(ready, '');
    const [one, two] = await Promise.all(sessions);
    expect(await pidOf(one as McpSession)).toBe(await pidOf(two as McpSession));
    expect(starts(mark)).toBe(1);
  });

  test('a shared stdio target is ended when the gateway stops', async () => {
    const gate = await start([shared('a', '--ignore-term', '--linger')]);
    const pid = await pidOf(await open(gate));
    await gate.close();
    expect(isAlive(pid)).toBe(false);
  });
});

test('500 sessions use one shared process, each gets its own answers, and nothing is left when they end', async () => {
  await using gate = await start([shared('a')], { mcp: { maxChildren: 1 } });
  const sessions: McpSession[] = [];
  while (sessions.length < 500)
    sessions.push(...(await Promise.all(Array.from({ length: 50 }, () => open(gate)))));
  const answers = await Promise.all(
    sessions.map(async (session, index) => {
      const { result } = await session.send({ id: 1, ...call('echo', { message: `${index}` }) });
      return result.content[0].text;
    }),
  );
  expect(answers).toEqual(sessions.map((_, index) => `${index}`));
  const pid = await pidOf(sessions[0] as McpSession);
  expect(await pidOf(sessions[499] as McpSession)).toBe(pid);
  const ended = await Promise.all(sessions.map((session) => session.end()));
  expect(ended.every(({ status }) => status === 204)).toBe(true);
  expect(isAlive(pid)).toBe(false);
});
