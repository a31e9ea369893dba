import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../../../kit/config.ts';
import { openEvents } from '../../../../kit/event-stream.ts';
import { temporaryFolder } from '../../../../kit/folder.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { type Json, openSession, toolCall } from '../../../../kit/mcp.ts';
import { reply } from '../../../../kit/mcp-upstream.ts';
import { metaKey, modern, modernCall, modernEvents, modernUpstream } from '../../../../kit/modern.ts';
import { until } from '../../../../kit/until.ts';

const SAMPLING = 'sampling/createMessage';
const A = chaos('a');
const asking = { capabilities: { sampling: {}, elicitation: {}, roots: {} } };
const question = { method: SAMPLING, params: { maxTokens: 1 } };

/** The only request in an `input_required` result, by its key. */
function asked({ result }: { result: Json }): { key: string; request: Json; state: string } {
  expect(result.resultType).toBe('input_required');
  const [[key, request], ...others] = Object.entries(result.inputRequests) as [[string, Json]];
  expect(others).toEqual([]);
  return { key, request, state: result.requestState };
}

describe('a client of revision 2026-07-28 in front of a target with sessions', () => {
  test('a request of the server becomes required input, and the next request continues the call', async () => {
    await using gate = await gateway(mcpConfig([A]));
    const url = `${gate.url}/mcp`;
    const { key, request, state } = asked(await modernCall(url, 'ask', question, asking));
    expect(request).toEqual(question);
    const answer = { role: 'assistant', model: 'm', content: { type: 'text', text: 'said' } };
    const more = { requestState: state, inputResponses: { [key]: answer, unknown: {} } };
    const { result, status } = await modernCall(url, 'ask', question, { ...asking, id: 2 }, more);
    expect(status).toBe(200);
    expect(result.resultType).toBe('complete');
    expect(JSON.parse(result.content[0].text)).toEqual(answer);
  });

  test('input that is missing is requested again', async () => {
    await using gate = await gateway(mcpConfig([A]));
    const url = `${gate.url}/mcp`;
    const first = asked(await modernCall(url, 'ask', question, asking));
    const without = { requestState: first.state, inputResponses: {} };
    const second = asked(await modernCall(url, 'ask', question, asking, without));
    expect([second.key, second.request]).toEqual([first.key, first.request]);
    expect(second.state).not.toBe(first.state);
    const more = { requestState: second.state, inputResponses: { [second.key]: { said: 1 } } };
    const { result } = await modernCall(url, 'ask', question, asking, more);
    expect(JSON.parse(result.content[0].text)).toEqual({ said: 1 });
  });

  test.each([
    ['is unknown', 'agctl-forged', question, /unknown or has expired/],
    [
      'belongs to other arguments',
      undefined,
      { ...question, method: 'roots/list' },
      /belongs to another request/,
    ],
  ])('a requestState that %s is an error, and the call still waits', async (_what, forged, args, message) => {
    await using gate = await gateway(mcpConfig([A]));
    const url = `${gate.url}/mcp`;
    const { key, state } = asked(await modernCall(url, 'ask', question, asking));
    const responses = { inputResponses: { [key]: { said: 1 } } };
    const wrong = await modernCall(url, 'ask', args, asking, { requestState: forged ?? state, ...responses });
    expect(wrong.error.code).toBe(-32602);
    expect(wrong.error.message).toMatch(message);
    const right = await modernCall(url, 'ask', question, asking, { requestState: state, ...responses });
    expect(JSON.parse(right.result.content[0].text)).toEqual({ said: 1 });
  });

  test('a requestState of another caller is unknown', async () => {
    await using gate = await gateway(mcpConfig([A]));
    const url = `${gate.url}/mcp`;
    const as = (token: string) => ({ ...asking, headers: { authorization: `Bearer ${token}` } });
    const { key, state } = asked(await modernCall(url, 'ask', question, as('alice')));
    const more = { requestState: state, inputResponses: { [key]: { said: 1 } } };
    expect((await modernCall(url, 'ask', question, as('bob'), more)).error.message).toMatch(/unknown/);
    const { result } = await modernCall(url, 'ask', question, as('alice'), more);
    expect(JSON.parse(result.content[0].text)).toEqual({ said: 1 });
  });

  test('a call that waits for input continues after a reload', async () => {
    await using folder = await temporaryFolder();
    await using gate = await gateway(mcpConfig([A]), { live: 'asked', folder: folder.path });
    const url = `${gate.url}/mcp`;
    const { key, state } = asked(await modernCall(url, 'ask', question, asking));
    const changed = mcpConfig([A], { backend: { failureMode: 'failClosed' } });
    await writeFile(join(folder.path, 'test.yaml'), changed);
    await gate.live.reload();
    const more = { requestState: state, inputResponses: { [key]: { said: 1 } } };
    const { result } = await modernCall(url, 'ask', question, asking, more);
    expect(JSON.parse(result.content[0].text)).toEqual({ said: 1 });
  });

  test('a call is cancelled at the target when its input does not come in time', async () => {
    await using gate = await gateway(mcpConfig([A]), { limits: { inputTimeout: 200 } });
    const url = `${gate.url}/mcp`;
    asked(await modernCall(url, 'ask', question, asking));
    await until(async () => {
      const { result } = await modernCall(url, 'received', {}, asking);
      return result.content[0].text.includes('notifications/cancelled');
    });
  });

  test('the oldest of too many waiting calls of one caller is cancelled', async () => {
    const route = { policies: { apiKey: { keys: [{ key: 'k' }], mode: 'strict' } } };
    await using gate = await gateway(mcpConfig([A], { route }), { limits: { callsAwaitingInput: 1 } });
    const url = `${gate.url}/mcp`;
    const own = { ...asking, headers: { authorization: 'Bearer k' } };
    const first = asked(await modernCall(url, 'ask', question, own));
    const second = asked(await modernCall(url, 'ask', question, own));
    const answering = ({ key, state }: { key: string; state: string }) =>
      modernCall(url, 'ask', question, own, { requestState: state, inputResponses: { [key]: { said: 1 } } });
    expect((await answering(first)).error.message).toMatch(/unknown or has expired/);
    expect((await answering(second)).result.resultType).toBe('complete');
  });

  test('a request that the client did not declare to support is refused by the gateway', async () => {
    await using gate = await gateway(mcpConfig([A]));
    const { result } = await modernCall(`${gate.url}/mcp`, 'ask', question);
    expect(JSON.parse(result.content[0].text).error.message).toBe(`the client does not support ${SAMPLING}`);
  });

  test('concurrent calls of clients that cannot be told apart run in different children', async () => {
    await using gate = await gateway(mcpConfig([A]));
    const url = `${gate.url}/mcp`;
    const args = [1, 2, 3].map((maxTokens) => ({ method: SAMPLING, params: { maxTokens }, after: 50 }));
    const replies = await Promise.all(args.map((each) => modernCall(url, 'ask', each, asking)));
    const requests = replies.map(asked);
    expect(requests.map(({ request }) => request.params.maxTokens)).toEqual([1, 2, 3]);
  });

  test('log messages are sent for a request with a log level, and only those of that level', async () => {
    await using gate = await gateway(mcpConfig([A]));
    const url = `${gate.url}/mcp`;
    const notify = { method: 'notifications/message', params: { level: 'warning', data: 'x' } };
    const withLevel = (level: string) => ({ meta: { [metaKey('logLevel')]: level } });
    const told = await modernCall(url, 'notify', notify, withLevel('info'));
    expect(told.messages.map(({ method }: Json) => method)).toEqual(['notifications/message', undefined]);
    expect((await modernCall(url, 'notify', notify, withLevel('error'))).messages).toHaveLength(1);
    expect((await modernCall(url, 'notify', notify)).messages).toHaveLength(1);
    const received = await modernCall(url, 'received');
    expect(received.result.content[0].text).toContain('logging/setLevel');
  });

  test('progress reaches the request with its own token, also if several requests have the same', async () => {
    await using gate = await gateway(mcpConfig([A]));
    const url = `${gate.url}/mcp`;
    const replies = await Promise.all(
      [1, 2, 3].map((steps) => modernCall(url, 'progress', { steps }, { meta: { progressToken: 'same' } })),
    );
    for (const [index, { messages }] of replies.entries()) {
      const progress = messages.filter(({ method }: Json) => method === 'notifications/progress');
      expect(progress.map(({ params }: Json) => params.progressToken)).toEqual(Array(index + 1).fill('same'));
    }
  });

  test('the target gets an initialize of its own revision, and no _meta of the newer one', async () => {
    await using gate = await gateway(mcpConfig([A]));
    const url = `${gate.url}/mcp`;
    const { result } = await modernCall(url, 'received', {}, { ...asking, meta: { own: 1 } });
    const lines = JSON.parse(result.content[0].text).map((line: string) => JSON.parse(line));
    expect(lines.map(({ method }: Json) => method)).toEqual([
      'server/discover',
      'initialize',
      'notifications/initialized',
      'tools/call',
    ]);
    expect(lines[1].params).toMatchObject({
      ...asking,
      protocolVersion: '2025-11-25',
      clientInfo: { name: 'test' },
    });
    expect(lines[3].params._meta).toEqual({ own: 1 });
  });
});

test('a member task of a call, which requests a task in 2025-11-25, does not reach a target with sessions', async () => {
  await using gate = await gateway(mcpConfig([A]));
  const more = { task: { ttl: 1000 }, own: 1 };
  const { result } = await modernCall(`${gate.url}/mcp`, 'received', {}, {}, more);
  const { params } = JSON.parse(JSON.parse(result.content[0].text).at(-1));
  expect(params).toMatchObject({ name: 'received', own: 1 });
  expect(params).not.toHaveProperty('task');
});

describe('a client with a session in front of a target that only has revision 2026-07-28', () => {
  const inputServer = () =>
    modernUpstream('up', ({ message }, response) => {
      if (message.method !== 'tools/call') return false;
      const { inputResponses, requestState, name } = message.params;
      if (inputResponses?.who !== undefined)
        reply(response, message, {
          resultType: 'complete',
          content: [{ type: 'text', text: JSON.stringify([inputResponses, requestState]) }],
        });
      else if (name === 'ask')
        reply(response, message, {
          resultType: 'input_required',
          inputRequests: { who: { method: 'elicitation/create', params: { message: 'Who?' } } },
          requestState: 'state 1',
        });
      else return false;
      return true;
    });
  const INIT = {
    jsonrpc: '2.0',
    id: 0,
    method: 'initialize',
    params: {
      protocolVersion: '2025-11-25',
      capabilities: { elicitation: {} },
      clientInfo: { name: 'old', version: '1' },
    },
  };

  test('initialize, lists and calls work, and each request has the _meta of the newer revision', async () => {
    await using up = await modernUpstream('up');
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
    const session = await openSession(`${gate.url}/mcp`, {}, INIT);
    expect(session.initialize.result).toMatchObject({
      protocolVersion: '2025-11-25',
      serverInfo: { name: 'up', version: '7' },
      instructions: 'how to use up',
    });
    expect((await session.request('tools/list')).result.tools[0].name).toBe('say');
    await session.request('logging/setLevel', { level: 'warning' });
    const { result } = await session.request('tools/call', { name: 'say', arguments: { message: 'hi' } });
    expect(result.content[0].text).toBe('up says hi');
    const [call] = up.of('tools/call') as Json[];
    expect(call.message.params._meta).toEqual({
      [metaKey('protocolVersion')]: '2026-07-28',
      [metaKey('clientInfo')]: { name: 'old', version: '1' },
      [metaKey('clientCapabilities')]: { elicitation: {} },
      [metaKey('logLevel')]: 'warning',
    });
    expect(call.headers).toMatchObject({ 'mcp-method': 'tools/call', 'mcp-name': 'say' });
    expect((await session.request('ping')).result).toEqual({});
  });

  test('required input becomes a request to the client, whose answer is sent with the next round', async () => {
    await using up = await inputServer();
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
    const session = await openSession(`${gate.url}/mcp`, {}, INIT);
    await using stream = await openEvents(session.url, {
      session: session.id,
      message: toolCall('c', 'ask'),
    });
    const { id, params } = await stream.next(({ method }) => method === 'elicitation/create');
    expect(params).toEqual({ message: 'Who?' });
    await session.send({ id, result: { action: 'accept', content: { name: 'Ada' } } });
    const { result } = await stream.next((message) => message.id === 'c');
    expect(JSON.parse(result.content[0].text)).toEqual([
      { who: { action: 'accept', content: { name: 'Ada' } } },
      'state 1',
    ]);
    const ids = up.of('tools/call').map(({ message }) => message.id);
    expect(new Set(ids).size).toBe(2);
  });

  test('an error of the client for required input fails the call with its message', async () => {
    await using up = await inputServer();
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
    const session = await openSession(`${gate.url}/mcp`, {}, INIT);
    await using stream = await openEvents(session.url, {
      session: session.id,
      message: toolCall('c', 'ask'),
    });
    const { id } = await stream.next(({ method }) => method === 'elicitation/create');
    await session.send({ id, error: { code: -1, message: 'no user here' } });
    const { error } = await stream.next((message) => message.id === 'c');
    expect(error.message).toBe("the client did not answer the server's request: no user here");
  });

  test('a server that requests input forever fails the call', async () => {
    await using up = await modernUpstream('up', ({ message }, response) => {
      if (message.method !== 'tools/call') return false;
      reply(response, message, { resultType: 'input_required', requestState: 'again' });
      return true;
    });
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]), {
      limits: { inputRounds: 3, retryDelayMin: 1 },
    });
    const session = await openSession(`${gate.url}/mcp`, {}, INIT);
    const { error } = await session.request('tools/call', { name: 'ask' });
    expect(error.message).toBe('the server requested input more than 3 times');
    expect(up.of('tools/call')).toHaveLength(4);
  });

  test('cancelling a call that waits for input withdraws the request to the client', async () => {
    await using up = await inputServer();
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
    const session = await openSession(`${gate.url}/mcp`, {}, INIT);
    await using stream = await openEvents(session.url, {
      session: session.id,
      message: toolCall('c', 'ask'),
    });
    const { id } = await stream.next(({ method }) => method === 'elicitation/create');
    await session.send({ method: 'notifications/cancelled', params: { requestId: 'c' } });
    await stream.untilEnd();
    await session.send({ id, result: { action: 'cancel' } });
    expect(up.of('tools/call')).toHaveLength(1);
  });
});

describe('subscriptions/listen', () => {
  const ALL = { toolsListChanged: true, resourceSubscriptions: ['file:///a'] };

  test('notifications of a target with that revision have the id of the client, and end with its connection', async () => {
    await using up = await modernUpstream('up');
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
    const stream = await modernEvents(
      `${gate.url}/mcp`,
      'subscriptions/listen',
      { notifications: ALL },
      { id: 'mine' },
    );
    const [ack] = [await stream.next(() => true)];
    const meta = { [metaKey('subscriptionId')]: 'mine' };
    expect(ack).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: { _meta: meta, notifications: ALL },
    });
    const [{ id, response }] = up.listening as [{ id: unknown; response: Json }];
    const changed = {
      method: 'notifications/tools/list_changed',
      params: { _meta: { [metaKey('subscriptionId')]: id } },
    };
    response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...changed })}\n\n`);
    const message = await stream.next(({ method }) => method === changed.method);
    expect(message.params._meta).toEqual(meta);
    const closed = new Promise((resolve) => response.on('close', resolve));
    stream.close();
    await closed;
  });

  test('a target with sessions is subscribed to, and unsubscribed from when nobody listens', async () => {
    await using gate = await gateway(
      mcpConfig([chaos('a', '--resources=file:///a', '--tools=notify,received')]),
    );
    const url = `${gate.url}/mcp`;
    const notifications = { ...ALL, promptsListChanged: true };
    const stream = await modernEvents(url, 'subscriptions/listen', { notifications });
    const ack = await stream.next(() => true);
    // It announces no prompts.
    expect(ack.params.notifications).toEqual(ALL);
    await modernCall(url, 'notify', {
      method: 'notifications/resources/updated',
      params: { uri: 'file:///a' },
    });
    const updated = await stream.next(({ method }) => method === 'notifications/resources/updated');
    expect(updated.params).toMatchObject({ uri: 'file:///a', _meta: { [metaKey('subscriptionId')]: 1 } });
    await modernCall(url, 'notify', { method: 'notifications/prompts/list_changed' });
    await modernCall(url, 'notify', { method: 'notifications/tools/list_changed' });
    await stream.next(({ method }) => method === 'notifications/tools/list_changed');
    expect(stream.messages.map(({ method }) => method)).not.toContain('notifications/prompts/list_changed');
    stream.close();
    await until(async () => {
      const { result } = await modernCall(url, 'received');
      return result.content[0].text.includes('resources/unsubscribe');
    });
  });

  test('several targets are acknowledged together, and resources have the names of the client', async () => {
    await using up = await modernUpstream('up');
    const targets = [
      { name: 'up', mcp: { host: up.url } },
      chaos('old', '--resources=file:///b', '--tools=notify'),
    ];
    await using gate = await gateway(mcpConfig(targets));
    const url = `${gate.url}/mcp`;
    const resourceSubscriptions = ['up+file:///a', 'old+file:///b', 'none+file:///c'];
    await using stream = await modernEvents(url, 'subscriptions/listen', {
      notifications: { toolsListChanged: true, resourceSubscriptions },
    });
    const ack = await stream.next(() => true);
    expect(ack.params.notifications).toEqual({
      toolsListChanged: true,
      resourceSubscriptions: ['up+file:///a', 'old+file:///b'],
    });
    await modernCall(url, 'old_notify', {
      method: 'notifications/resources/updated',
      params: { uri: 'file:///b' },
    });
    const updated = await stream.next(({ method }) => method === 'notifications/resources/updated');
    expect(updated.params.uri).toBe('old+file:///b');
  });

  test('a target that ends its stream ends the stream of the client with a response', async () => {
    await using up = await modernUpstream('up');
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
    await using stream = await modernEvents(
      `${gate.url}/mcp`,
      'subscriptions/listen',
      { notifications: ALL },
      { id: 5 },
    );
    await stream.next(() => true);
    (up.listening[0] as Json).response.end();
    const { result } = await stream.next(({ id }) => id === 5);
    expect(result).toEqual({ resultType: 'complete', _meta: { [metaKey('subscriptionId')]: 5 } });
    await stream.untilEnd();
  });

  test('a reload that drains the sessions ends the streams with a response', async () => {
    await using up = await modernUpstream('up');
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
    await using stream = await modernEvents(
      `${gate.url}/mcp`,
      'subscriptions/listen',
      { notifications: ALL },
      { id: 5 },
    );
    await stream.next(() => true);
    const closing = gate.close();
    expect((await stream.next(({ id }) => id === 5)).result.resultType).toBe('complete');
    await closing;
  });

  test('more streams or resources than allowed are refused', async () => {
    await using up = await modernUpstream('up');
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]), {
      limits: { sessions: 1, subscriptions: 2 },
    });
    const url = `${gate.url}/mcp`;
    const many = { notifications: { resourceSubscriptions: ['a:1', 'a:2', 'a:3'] } };
    expect((await modern(url, 'subscriptions/listen', many)).error.message).toMatch(
      /more than 2 subscriptions/,
    );
    await using first = await modernEvents(url, 'subscriptions/listen', { notifications: ALL });
    await first.next(() => true);
    const second = await modern(url, 'subscriptions/listen', { notifications: ALL });
    expect(second.error.message).toMatch(/more than 1 subscriptions\/listen/);
  });
});
