import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { mcpConfig } from '../../kit/config.ts';
import { openEvents } from '../../kit/event-stream.ts';
import { gateway } from '../../kit/gateway.ts';
import { type Json, openSession } from '../../kit/mcp.ts';
import { type McpUpstream, mcpUpstream, type Received, reply } from '../../kit/mcp-upstream.ts';
import { until } from '../../kit/until.ts';

const RELATED = 'io.modelcontextprotocol/related-task';
const TASKS = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
const target = (up: McpUpstream, name: string) => ({ name, mcp: { host: up.url } });

/** An HTTP target that runs tools as tasks, each with the id `t+1`. */
function taskTarget(name: string, capabilities: object = { tasks: TASKS }): Promise<McpUpstream> {
  const task = { taskId: 't+1', status: 'working', createdAt: '2026-01-01T00:00:00Z' };
  return mcpUpstream({
    name,
    capabilities: { tools: {}, ...capabilities },
    script: ({ message }: Received, response) => {
      const result = resultOf(message);
      if (result === undefined) return false;
      reply(response, message, result);
      return true;
    },
  });

  function resultOf(message: Json): object | undefined {
    switch (message?.method) {
      case 'tools/call':
        return message.params.task === undefined ? undefined : { task };
      case 'tasks/get':
      case 'tasks/cancel':
        return { ...task, _meta: { of: name } };
      case 'tasks/result':
        return {
          content: [{ type: 'text', text: `${name} is done` }],
          structuredContent: { taskId: 'not an id of a task' },
          _meta: { [RELATED]: { taskId: 't+1' } },
        };
      case 'tasks/list':
        return message.params?.cursor === undefined
          ? { tasks: [task], nextCursor: 'more' }
          : { tasks: [{ ...task, taskId: 't+2' }] };
      default:
        return undefined;
    }
  }
}

describe('initialize over several targets', () => {
  test('initialize over several targets merges tasks, experimental and extensions at every depth and always announces listChanged', async () => {
    const ui = 'io.modelcontextprotocol/ui';
    await using one = await mcpUpstream({
      capabilities: {
        tools: { listChanged: false },
        tasks: { list: {}, requests: { tools: { call: {} } } },
        experimental: { 'one/x': { n: 1 }, both: { first: true, n: 1 } },
        extensions: { [ui]: { mimeTypes: ['text/html'] } },
      },
    });
    await using two = await mcpUpstream({
      capabilities: {
        tasks: { cancel: {} },
        experimental: { 'two/y': {}, both: { second: true, n: 2 } },
        extensions: { 'example/other': {} },
        unknown: {},
      },
    });
    await using gate = await gateway(mcpConfig([target(one, 'one'), target(two, 'two')]));
    const { result } = (await openSession(`${gate.url}/mcp`)).initialize;
    expect(result.capabilities).toEqual({
      tools: { listChanged: true },
      tasks: TASKS,
      experimental: { 'one/x': { n: 1 }, 'two/y': {}, both: { first: true, second: true, n: 1 } },
      extensions: { [ui]: { mimeTypes: ['text/html'] }, 'example/other': {} },
    });
  });
});

describe.each([{}, { prefixMode: 'never' }])('a task of one of several targets, with %o', (backend) => {
  test('a task id of one of several targets identifies its target in every method and every result', async () => {
    await using one = await taskTarget('one');
    await using two = await mcpUpstream({ name: 'two', capabilities: { prompts: {} } });
    await using gate = await gateway(mcpConfig([target(one, 'one'), target(two, 'two')], { backend }));
    const session = await openSession(`${gate.url}/mcp`);
    const name = 'prefixMode' in backend ? 'say' : 'one_say';
    const created = await session.request('tools/call', { name, task: { ttl: 1000 } });
    const { taskId } = created.result.task;
    expect(taskId).toBe('one+t+1');
    for (const method of ['tasks/get', 'tasks/cancel']) {
      const { result } = await session.request(method, { taskId });
      expect(result).toMatchObject({ taskId, _meta: { of: 'one' } });
    }
    const { result } = await session.request('tasks/result', { taskId });
    expect(result).toEqual({
      content: [{ type: 'text', text: 'one is done' }],
      structuredContent: { taskId: 'not an id of a task' },
      _meta: { [RELATED]: { taskId } },
    });
    for (const method of ['tasks/get', 'tasks/cancel', 'tasks/result']) {
      expect(one.of(method).map(({ message }) => message.params.taskId)).toEqual(['t+1']);
      expect(two.of(method)).toEqual([]);
    }
  });
});

describe('tasks of several targets', () => {
  test('tasks of several targets are visible only where a rule allows it, under the id of their target', async () => {
    await using one = await taskTarget('one');
    await using two = await taskTarget('two');
    const mcpAuthorization = { rules: ['mcp.task.target == "one" && mcp.task.name == "t+1"'] };
    await using gate = await gateway(
      mcpConfig([target(one, 'one'), target(two, 'two')], { route: { policies: { mcpAuthorization } } }),
    );
    const session = await openSession(`${gate.url}/mcp`);
    const { result } = await session.request('tasks/list');
    expect(result.tasks.map(({ taskId }: Json) => taskId)).toEqual(['one+t+1']);
    expect((await session.request('tasks/get', { taskId: 'one+t+1' })).result.taskId).toBe('one+t+1');
    for (const taskId of ['one+t+2', 'two+t+1'])
      expect((await session.request('tasks/get', { taskId })).error.message).toBe(`Unknown task: ${taskId}`);
    expect(one.of('tasks/get')).toHaveLength(1);
    expect(two.of('tasks/get')).toEqual([]);
  });

  test('tasks/list merges the tasks of all targets that can list them, page by page', async () => {
    await using one = await taskTarget('one');
    await using two = await taskTarget('two');
    await using three = await taskTarget('three', { tasks: { cancel: {} } });
    await using gate = await gateway(
      mcpConfig([target(one, 'one'), target(two, 'two'), target(three, 'three')]),
    );
    const session = await openSession(`${gate.url}/mcp`);
    const { result } = await session.request('tasks/list');
    expect(result.tasks.map(({ taskId }: Json) => taskId)).toEqual([
      'one+t+1',
      'one+t+2',
      'two+t+1',
      'two+t+2',
    ]);
    expect(three.of('tasks/list')).toEqual([]);
    expect((await session.request('tasks/list', { cursor: 'bogus' })).error).toMatchObject({ code: -32602 });
  });

  test.each([
    ['tasks/get', { taskId: 't+1' }, 'Unknown task: t+1'],
    ['tasks/cancel', { taskId: 'nobody+1' }, 'Unknown task: nobody+1'],
    ['tasks/result', {}, 'expected params.taskId to be a string'],
    ['tasks/get', { taskId: ['one+t'] }, 'expected params.taskId to be a string'],
  ])('an unknown task is invalid params: %s %o', async (method, params, text) => {
    await using one = await taskTarget('one');
    await using two = await taskTarget('two');
    await using gate = await gateway(mcpConfig([target(one, 'one'), target(two, 'two')]));
    const session = await openSession(`${gate.url}/mcp`);
    const { error } = await session.request(method, params);
    expect(error).toEqual({ code: -32602, message: text });
    expect([...one.of(method), ...two.of(method)]).toEqual([]);
  });

  test("task ids are translated in server notifications and requests, and in the client's responses to them", async () => {
    await using one = await taskTarget('one');
    await using two = await taskTarget('two');
    await using gate = await gateway(mcpConfig([target(one, 'one'), target(two, 'two')]));
    const session = await openSession(`${gate.url}/mcp`);
    await using own = await openEvents(session.url, { session: session.id });
    await until(() => two.streams.length === 1);
    const send = (message: object): void =>
      void two.streams[0]?.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
    const _meta = { [RELATED]: { taskId: 't+1' } };
    send({ method: 'notifications/tasks/status', params: { taskId: 't+1', status: 'completed' } });
    send({ id: 'ask', method: 'elicitation/create', params: { message: 'sure?', _meta } });
    const status = await own.next(({ method }) => method === 'notifications/tasks/status');
    expect(status.params).toEqual({ taskId: 'two+t+1', status: 'completed' });
    const asked = await own.next(({ method }) => method === 'elicitation/create');
    expect(asked.params._meta[RELATED].taskId).toBe('two+t+1');
    await session.send({ id: asked.id, result: { action: 'accept', _meta: asked.params._meta } });
    const answer = (): Json => two.received.find(({ message }) => message?.result !== undefined)?.message;
    await until(() => answer() !== undefined);
    expect(answer()).toEqual({ jsonrpc: '2.0', id: 'ask', result: { action: 'accept', _meta } });
  });
});

test('a task of the official everything server runs through a gateway with several targets', async () => {
  const everything = fileURLToPath(
    new URL('../../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url),
  );
  await using other = await mcpUpstream({ name: 'other' });
  const real = { name: 'every', stdio: { cmd: process.execPath, args: [everything, 'stdio'] } };
  await using gate = await gateway(mcpConfig([real, target(other, 'other')]));
  const session = await openSession(`${gate.url}/mcp`);
  const created = await session.request('tools/call', {
    name: 'every_simulate-research-query',
    arguments: { topic: 'gateways' },
    task: { ttl: 60_000 },
  });
  const { taskId } = created.result.task;
  expect(taskId).toMatch(/^every\+/);
  expect((await session.request('tasks/get', { taskId })).result.taskId).toBe(taskId);
  const listed = (await session.request('tasks/list')).result.tasks;
  expect(listed.map((task: Json) => task.taskId)).toEqual([taskId]);
  expect((await session.request('tasks/cancel', { taskId })).result.status).toBe('cancelled');
});
