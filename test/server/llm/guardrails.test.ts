import { describe, expect, test } from 'vitest';
import {
  answering,
  bodyOf,
  CHAT,
  chat,
  completion,
  errorOf,
  guardrail,
  llmGateway,
  llmProvider,
  type Text,
  webhook,
} from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { type Answer, httpUpstream, refusingPort } from '../../kit/upstream.ts';

// The default of 10 s is too long for a test with a silent webhook.
const LIMITS = { limits: { guardrailTimeout: 200 } };
const mask = ({ content, ...rest }: Text): Text => ({ ...rest, content: content.replaceAll('4111', '****') });
const maskAll = () =>
  guardrail(({ messages, choices }) => ({
    body:
      messages === undefined
        ? { choices: choices?.map(({ message }) => ({ message: mask(message) })) }
        : { messages: messages.map(mask) },
  }));

describe('request guardrails', () => {
  test('request guardrails mask texts and keep all other members of a message', async () => {
    await using provider = await llmProvider();
    await using hook = await maskAll();
    await using served = await llmGateway(provider, {
      model: { guardrails: { request: [webhook(hook, { inspect: ['toolCalls', 'reasoning'] })] } },
    });
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } };
    const call = (card: string) => ({
      ...{ id: 'c1', type: 'function', function: { name: 'pay', arguments: `{"card":"${card}"}` } },
    });
    const messages = [
      { role: 'system', content: 'Be brief.', name: 'boss' },
      { role: 'user', content: [{ type: 'text', text: 'card 4111' }, image, { type: 'text', text: 'ok' }] },
      { role: 'assistant', content: null, tool_calls: [call('4111')], reasoning_content: 'use 4111' },
      { role: 'tool', tool_call_id: 'c1', content: 'paid with 4111' },
    ];
    expect((await chat(served, { ...CHAT, messages, tools: [{ type: 'function' }] })).status).toBe(200);
    expect(bodyOf(hook)).toEqual({
      body: {
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'card 4111 ok' },
          { role: 'assistant', content: '' },
          { role: 'assistant', content: '{"card":"4111"}' },
          { role: 'assistant', content: 'use 4111' },
          { role: 'tool', content: 'paid with 4111' },
        ],
      },
    });
    expect(bodyOf(provider)).toEqual({
      ...CHAT,
      messages: [
        messages[0],
        { role: 'user', content: [{ type: 'text', text: 'card **** ok' }, image] },
        { role: 'assistant', content: null, tool_calls: [call('****')], reasoning_content: 'use ****' },
        { role: 'tool', tool_call_id: 'c1', content: 'paid with ****' },
      ],
      tools: [{ type: 'function' }],
    });
    expect((await served.accessLine(1))['gw.ai.guardrail.unseen']).toBe('1');
  });

  test('a webhook gets one content per message and keeps what it did not see, unless it inspects more', async () => {
    await using provider = await llmProvider();
    await using hook = await maskAll();
    await using served = await llmGateway(provider, {
      model: { guardrails: { request: [webhook(hook)] } },
    });
    const call = { id: 'c1', type: 'function', function: { name: 'pay', arguments: '{"card":"4111"}' } };
    const messages = [
      { role: 'user', content: 'card 4111' },
      { role: 'assistant', content: null, tool_calls: [call], reasoning_content: 'use 4111' },
    ];
    expect((await chat(served, { ...CHAT, messages })).status).toBe(200);
    expect(bodyOf(hook)).toEqual({
      body: {
        messages: [
          { role: 'user', content: 'card 4111' },
          { role: 'assistant', content: '' },
        ],
      },
    });
    expect(bodyOf(provider)['messages']).toEqual([{ role: 'user', content: 'card ****' }, messages[1]]);
  });

  test('request guardrails may return another number of messages, which replace those of the request', async () => {
    await using provider = await llmProvider();
    const messages = [{ role: 'user', content: 'only this' }];
    await using hook = await guardrail(() => ({ body: { messages } }));
    await using served = await llmGateway(provider, {
      model: { guardrails: { request: [webhook(hook)] } },
    });
    await chat(served, { ...CHAT, messages: [...CHAT.messages, ...CHAT.messages] });
    expect(bodyOf(provider)['messages']).toEqual(messages);
  });

  test('request guardrails that return another number of texts for a request with tool calls fail', async () => {
    await using provider = await llmProvider();
    await using hook = await guardrail(() => ({ body: { messages: [{ role: 'user', content: 'this' }] } }));
    await using served = await llmGateway(provider, {
      model: { guardrails: { request: [webhook(hook)] } },
    });
    const messages = [{ role: 'assistant', tool_calls: [{ function: { arguments: '{}' } }] }];
    expect((await chat(served, { ...CHAT, messages: [...messages, ...messages] })).status).toBe(503);
    expect(provider.received).toEqual([]);
  });

  test.each([
    ['numbers of tokens', { prompt: [1, 2, 3] }],
    ['lists of them', { input: [[1], [2]] }],
    ['an object', { messages: { role: 'user' } }],
    ['deep nesting', { messages: [JSON.parse(`${'{"a":'.repeat(60)}"x"${'}'.repeat(60)}`)] }],
  ])('request guardrails reject input that they cannot read: %s', async (_, body) => {
    await using provider = await llmProvider();
    await using hook = await guardrail(() => ({}));
    await using served = await llmGateway(provider, {
      model: { guardrails: { request: [webhook(hook)] } },
    });
    const reply = await chat(served, { model: 'm', ...body });
    expect(reply.status).toBe(400);
    expect(errorOf(reply).code).toBe('guardrail_unsupported');
    expect(provider.received).toEqual([]);
  });

  test('request guardrails run in order, those of all models first, each on the output of the previous one', async () => {
    await using provider = await llmProvider();
    const append = (mark: string) =>
      guardrail(({ messages }) => ({
        body: { messages: messages?.map(({ role, content }) => ({ role, content: content + mark })) },
      }));
    await using general = await append('-general');
    await using first = await append('-first');
    await using second = await append('-second');
    await using served = await llmGateway(provider, {
      llm: { guardrails: { request: [webhook(general)] } },
      model: { guardrails: { request: [webhook(first), webhook(second)] } },
    });
    await chat(served);
    expect(bodyOf(provider)['messages']).toEqual([{ role: 'user', content: 'Hi-general-first-second' }]);
  });

  test('request guardrails reject with their status and body as plain text without a call to the provider', async () => {
    await using provider = await llmProvider();
    await using hook = await guardrail(() => ({ body: '<b>no</b>', status_code: 451, reason: 'policy 7' }));
    await using next = await guardrail(() => ({}));
    const request = [webhook(hook), webhook(next)];
    await using served = await llmGateway(provider, { model: { guardrails: { request } } });
    const reply = await chat(served);
    expect(reply).toMatchObject({ status: 451, text: '<b>no</b>' });
    expect(reply.headers).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      'x-content-type-options': 'nosniff',
    });
    expect(provider.received).toEqual([]);
    expect(next.received).toEqual([]);
    expect(await served.accessLine(1)).toMatchObject({
      error: 'request rejected by webhook guardrail',
      reason: 'Guardrail',
    });
  });

  test('request guardrails see every field that a provider may read on any path', async () => {
    await using provider = await llmProvider();
    await using hook = await maskAll();
    await using served = await llmGateway(provider, {
      model: { guardrails: { request: [webhook(hook)] } },
    });
    const body = { model: 'm', messages: [], instructions: 'say 4111', input: ['4111', 'b'], prompt: '4111' };
    const reply = await send(`${served.url}/v1/responses`, { method: 'POST', body: JSON.stringify(body) });
    expect(reply).toMatchObject({ status: 200 });
    expect(JSON.stringify(bodyOf(provider))).not.toContain('4111');
    expect(bodyOf(provider)).toEqual({
      ...body,
      instructions: 'say ****',
      input: ['****', 'b'],
      prompt: '****',
    });
  });

  test('request guardrails receive only client headers that are listed', async () => {
    await using provider = await llmProvider();
    await using hook = await guardrail(() => ({}));
    const headers = { 'x-listed': 'request.headers["x-canary"]', 'content-type': '"application/x-own"' };
    await using served = await llmGateway(provider, {
      model: { guardrails: { request: [webhook(hook, { headers })] } },
    });
    await chat(served, CHAT, { authorization: 'Bearer canary', cookie: 'canary=1', 'x-canary': 'listed' });
    expect(JSON.stringify(hook.received[0]?.rawHeaders).match(/canary/g)).toBeNull();
    expect(hook.received[0]?.headers).toMatchObject({
      'x-listed': 'listed',
      'content-type': 'application/x-own',
    });
  });
});

const json = (value: unknown): Answer => answering(JSON.stringify(value));
const FAILING: [string, Answer][] = [
  ['status 500 with a verdict', answering('{"action":{}}', 500)],
  ['a redirect', answering('{"action":{}}', 302)],
  ['HTML', answering('<p>ok</p>')],
  ['no action', json({})],
  ['an action that is a list', json({ action: [] })],
  ['a rejection with a text for a status', json({ action: { body: 'no', status_code: '403' } })],
  ['a rejection with status 99', json({ action: { body: 'no', status_code: 99 } })],
  ['a rejection with status 204', json({ action: { body: 'no', status_code: 204 } })],
  ['a rejection with status 1000', json({ action: { body: 'no', status_code: 1000 } })],
  ['a rejection without a status', json({ action: { body: 'no' } })],
  ['a status without a body', json({ action: { status_code: 403 } })],
  ['a rejection with an object', json({ action: { body: {}, status_code: 403 } })],
  ['a mask of the other phase', json({ action: { body: { choices: [] } } })],
  ['an action with a member that no verdict has', json({ action: { foo: 1 } })],
  ['a misspelt rejection', json({ action: { Body: 'no', statusCode: 403 } })],
  ['a pass with another member', json({ action: { reason: 'ok', pass: true } })],
  ['a pass whose reason is no text', json({ action: { reason: { blocked: true } } })],
  ['a pass with a body of nothing', json({ action: { body: null } })],
  ['a pass with a status of nothing', json({ action: { status_code: null } })],
  ['a rejection with another member', json({ action: { body: 'no', status_code: 403, until: 'later' } })],
  ['a mask and a rejection', json({ action: { body: { messages: [] }, status_code: 403 } })],
  ['a mask with another member', json({ action: { body: { messages: [] }, foo: 1 } })],
  ['a mask of both phases', json({ action: { body: { messages: [], choices: [] } } })],
  ['a mask that is no list', json({ action: { body: { messages: {} } } })],
  ['a mask that is a list itself', json({ action: { body: [{ role: 'user', content: 'x' }] } })],
  ['a list of verdicts', json([{ action: {} }])],
  ['an action that is a text', json({ action: 'pass' })],
  ['an action of nothing', json({ action: null })],
  ['an action beside something else', json({ action: {}, status_code: 403 })],
  ['two actions', answering('{"action":{"body":"no","status_code":403},"action":{}}')],
  ['two actions, one escaped', answering('{"action":{"body":"no","status_code":403},"\\u0061ction":{}}')],
  [
    'an action with a member twice',
    answering('{"action":{"body":"no","status_code":403,"reason":"a","reason":"b"}}'),
  ],
  [
    'bytes that are no UTF-8',
    (_, response) => response.end(Buffer.from('{"action":{"reason":"\xff"}}', 'latin1')),
  ],
  [
    'a content coding that was not asked for',
    (_, response) => response.writeHead(200, { 'content-encoding': 'br' }).end('{"action":{}}'),
  ],
  ['silence', () => undefined],
  ['a body that does not end', (_, response) => response.writeHead(200).write('{"action":')],
  ['a reset', (_, response) => response.destroy()],
  ['too many bytes', (_, response) => response.end(' '.repeat(5 * 1024 * 1024))],
];

test.each([{}, { reason: 'nothing found' }, { reason: null }])(
  'a webhook response with %j passes the call',
  async (action) => {
    await using provider = await llmProvider();
    await using hook = await guardrail(() => action);
    await using gate = await llmGateway(provider, {
      model: { guardrails: { request: [webhook(hook)] } },
    });
    expect((await chat(gate)).status).toBe(200);
  },
);
test.each([
  '"a b"',
  '"evil.example/x"',
  '"u@evil.example"',
  '"a.example\\r\\nx-injected: 1"',
  '"\u00e4.example"',
  '""',
])('a webhook is called with its own Host when `:authority` evaluates to %s', async (authority) => {
  await using provider = await llmProvider();
  await using hook = await guardrail(() => ({}));
  const headers = { ':authority': authority };
  await using served = await llmGateway(provider, {
    model: { guardrails: { request: [webhook(hook, { headers })] } },
  });
  expect((await chat(served)).status).toBe(200);
  expect(hook.received.map((request) => request.headers.host)).toEqual([hook.address]);
  expect(hook.received[0]?.headers).not.toHaveProperty('x-injected');
});

test.each([
  '"//evil.example/x"',
  '"http://evil.example/x"',
  '"/a b"',
  '"/a#b"',
  '"/a\\r\\nx-injected: 1"',
  '"/\u00e4"',
  'request.headers["x-none"]',
])('a webhook is called with its own path when `:path` evaluates to %s', async (path) => {
  await using provider = await llmProvider();
  await using hook = await guardrail(() => ({}));
  const headers = { ':path': path };
  await using served = await llmGateway(provider, {
    model: { guardrails: { request: [webhook(hook, { headers })] } },
  });
  expect((await chat(served)).status).toBe(200);
  expect(hook.received.map(({ target }) => target)).toEqual(['/request']);
  expect(hook.received[0]?.headers).not.toHaveProperty('x-injected');
});

test('a client gets at most 64 KiB of what a webhook says of a rejection', async () => {
  await using provider = await llmProvider();
  await using hook = await guardrail(() => ({ body: 'x'.repeat(100_000), status_code: 403 }));
  await using served = await llmGateway(provider, { model: { guardrails: { request: [webhook(hook)] } } });
  const reply = await chat(served);
  expect([reply.status, reply.text.length]).toEqual([403, 65_536]);
});

describe('guardrail webhooks with invalid responses', () => {
  test.each(FAILING)(
    'an invalid webhook response fails the call with 503, or passes it with failure mode open: %s',
    async (_, answer) => {
      await using provider = await llmProvider();
      await using hook = await httpUpstream(answer);
      await using closed = await llmGateway(provider, {
        model: { guardrails: { request: [webhook(hook)] } },
        options: LIMITS,
      });
      const refused = await chat(closed);
      expect(refused.status).toBe(503);
      expect(errorOf(refused).message).toBe('failed to process LLM request: prompt guard failed');
      expect(provider.received).toEqual([]);
      expect(await closed.accessLine(1)).toMatchObject({ reason: 'Guardrail' });
      const open = [webhook(hook, { failureMode: 'failOpen' })];
      await using opened = await llmGateway(provider, {
        model: { guardrails: { request: open } },
        options: LIMITS,
      });
      expect((await chat(opened)).text).toBe(completion('Hello.'));
      expect(opened.log.join('')).toContain('failOpen');
    },
  );

  test('an unreachable webhook fails the call with 503', async () => {
    await using provider = await llmProvider();
    const hook = { address: `127.0.0.1:${await refusingPort()}` };
    await using served = await llmGateway(provider, {
      model: { guardrails: { response: [webhook(hook)] } },
    });
    const reply = await chat(served);
    expect(reply.status).toBe(503);
    expect(errorOf(reply).message).toBe('failed to process LLM response: prompt guard failed');
    expect((await served.accessLine(1))['error.detail']).toBe(`${hook.address}: connection refused`);
  });

  test('a webhook mask with items of another shape is 503 in every failure mode', async () => {
    await using provider = await llmProvider();
    await using hook = await guardrail(() => ({ body: { messages: [{ role: 'user' }] } }));
    const request = [webhook(hook, { failureMode: 'failOpen' })];
    await using served = await llmGateway(provider, { model: { guardrails: { request } } });
    expect((await chat(served)).status).toBe(503);
    expect(provider.received).toEqual([]);
  });

  test('a client disconnect cancels the webhook call, and the provider is not asked', async () => {
    await using provider = await llmProvider();
    let left = false;
    await using hook = await httpUpstream((_, response) => {
      response.once('close', () => {
        left = true;
      });
    });
    await using served = await llmGateway(provider, {
      model: { guardrails: { request: [webhook(hook)] } },
    });
    const leave = new AbortController();
    const call = fetch(`${served.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify(CHAT),
      signal: leave.signal,
    }).catch((error: Error) => error.name);
    await until(() => hook.received.length === 1);
    leave.abort();
    expect(await call).toBe('AbortError');
    await until(() => left);
    expect(await served.accessLine(1)).toMatchObject({ 'http.status': '499' });
    expect(provider.received).toEqual([]);
  });
});

describe('response guardrails', () => {
  const choice = (index: number, message: object): object => ({ index, message, finish_reason: 'stop' });

  test('response guardrails mask every text, keep tool calls and keep the bytes of unchanged responses', async () => {
    const call = (card: string) => ({
      ...{ id: 'c1', type: 'function', function: { name: 'pay', arguments: `{"card":"${card}"}` } },
    });
    const said = (card: string) => [
      choice(0, { role: 'assistant', content: `card ${card}`, refusal: null, reasoning: `hm, ${card}` }),
      choice(1, { role: 'assistant', content: null, tool_calls: [call(card)] }),
      choice(2, { role: 'assistant', content: null, refusal: `not ${card}` }),
    ];
    const choices = said('4111');
    let text = completion('', { choices });
    await using provider = await llmProvider((...all) => answering(text)(...all));
    await using hook = await maskAll();
    await using served = await llmGateway(provider, {
      model: { guardrails: { response: [webhook(hook, { inspect: ['toolCalls', 'reasoning'] })] } },
    });
    expect(JSON.parse((await chat(served)).text)).toEqual({
      ...JSON.parse(text),
      choices: said('****'),
    });
    text = completion('nothing to see', { seed: 0 }).replace('"seed":0', '"seed": 9007199254740993, "t":1.0');
    expect((await chat(served)).text).toBe(text);
  });

  test('response guardrails reject responses, and a mask with another number of choices is 503', async () => {
    await using provider = await llmProvider();
    let action: object = { body: '{"error":"blocked"}', status_code: 403 };
    await using hook = await guardrail(() => action);
    await using served = await llmGateway(provider, {
      model: { guardrails: { response: [webhook(hook)] } },
    });
    expect(await chat(served)).toMatchObject({ status: 403, text: '{"error":"blocked"}' });
    action = { body: { choices: [] } };
    expect((await chat(served)).status).toBe(503);
  });

  test('response guardrails turn an unreadable response into a 502 and skip provider errors', async () => {
    await using provider = await llmProvider((_, response, { body }) =>
      body.includes('fine')
        ? response.writeHead(400).end('{"error":{"code":1,"message":"no"}}')
        : response.end('not json'),
    );
    await using hook = await guardrail(() => ({}));
    await using served = await llmGateway(provider, {
      model: { guardrails: { response: [webhook(hook)] } },
    });
    expect((await chat(served)).status).toBe(502);
    expect(await chat(served, { ...CHAT, model: 'fine' })).toMatchObject({
      status: 400,
      text: '{"error":{"code":1,"message":"no"}}',
    });
    expect(hook.received).toEqual([]);
  });
});
