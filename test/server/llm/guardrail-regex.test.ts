import { describe, expect, test } from 'vitest';
import { eventsIn, WIRES, type WireName } from '../../kit/llm-events.ts';
import {
  answering,
  bodyOf,
  CHAT,
  chat,
  completion,
  EVERY_FORMAT,
  errorOf,
  llmGateway,
  llmProvider,
  streaming,
} from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';

const CARD = '4111 1111 1111 1111';
const MASK = '<CREDIT_CARD>';
const regex = (more: object = {}, rules: object[] = [{ builtin: 'creditCard' }]): object => ({
  regex: { rules, ...more },
});
const post = ({ url }: { url: string }, path: string, body: object) =>
  send(url + path, { method: 'POST', body: JSON.stringify(body) });

describe('guardrails with patterns on requests', () => {
  // In each message, the letter says which scope its text belongs to.
  const chatBody = {
    model: 'm',
    messages: [
      { role: 'system', content: `S ${CARD}` },
      { role: 'user', content: [{ type: 'text', text: `M ${CARD}` }] },
      {
        role: 'assistant',
        content: null,
        reasoning_content: `M ${CARD}`,
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'pay', arguments: `I ${CARD}` } }],
      },
      { role: 'tool', tool_call_id: 'c', content: `O ${CARD}` },
    ],
  };
  const messagesBody = {
    model: 'm',
    max_tokens: 9,
    system: [{ type: 'text', text: `S ${CARD}` }],
    messages: [
      { role: 'user', content: `M ${CARD}` },
      {
        role: 'assistant',
        content: [{ type: 'tool_use', id: 't', name: 'pay', input: { a: [`I ${CARD}`] } }],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text: `O ${CARD}` }] },
          { type: 'document', source: { type: 'text', media_type: 'text/plain', data: `M ${CARD}` } },
          {
            type: 'image',
            source: { type: 'base64', media_type: 'image/png', data: CARD.replaceAll(' ', '') },
          },
        ],
      },
    ],
  };
  const responsesBody = {
    model: 'm',
    instructions: `S ${CARD}`,
    input: [
      { role: 'developer', content: `S ${CARD}` },
      { role: 'user', content: [{ type: 'input_text', text: `M ${CARD}` }] },
      { type: 'function_call', call_id: 'c', name: 'pay', arguments: `I ${CARD}` },
      { type: 'function_call_output', call_id: 'c', output: `O ${CARD}` },
      { type: 'custom_tool_call', call_id: 'd', name: 'run', input: `I ${CARD}` },
    ],
  };
  const SCOPES = { systemPrompt: 'S', messages: 'M', toolInput: 'I', toolOutput: 'O' };
  const BODIES = { chat: chatBody, messages: messagesBody, responses: responsesBody };

  test.each(
    (['chat', 'messages', 'responses'] as const).flatMap((format) =>
      [undefined, ...(Object.keys(SCOPES) as (keyof typeof SCOPES)[])].map(
        (scope) => [format, scope] as const,
      ),
    ),
  )('patterns mask the texts of %s that are in scope %s and no other', async (format, scope) => {
    await using provider = await llmProvider();
    const item = { ...regex(), ...(scope && { scope: [scope] }) };
    await using served = await llmGateway(provider, {
      model: { provider: EVERY_FORMAT, guardrails: { request: [item] } },
    });
    await post(served, WIRES[format].path, BODIES[format]);
    const letters = scope === undefined ? 'SM' : SCOPES[scope];
    const masked = JSON.stringify(BODIES[format]).replaceAll(
      new RegExp(`([${letters}]) ${CARD}`, 'g'),
      `$1 ${MASK}`,
    );
    expect(bodyOf(provider)).toEqual(JSON.parse(masked));
  });

  test('a number in the input of a tool is masked as a text', async () => {
    await using provider = await llmProvider();
    const item = { ...regex(), scope: ['toolInput'] };
    await using served = await llmGateway(provider, {
      model: { provider: EVERY_FORMAT, guardrails: { request: [item] } },
    });
    const input = { card: 4111111111111111, amount: 5, note: CARD };
    const messages = [{ role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'pay', input }] }];
    await post(served, '/v1/messages', { model: 'm', max_tokens: 9, messages });
    expect(bodyOf(provider)['messages']).toMatchObject([
      { content: [{ input: { card: MASK, amount: 5, note: MASK } }] },
    ]);
  });

  test('a number in the call and the result of a function of the Gemini API is masked as a text', async () => {
    await using provider = await llmProvider();
    await using served = await llmGateway(provider, {
      model: {
        provider: EVERY_FORMAT,
        guardrails: { request: [{ ...regex(), scope: ['toolInput', 'toolOutput'] }] },
      },
    });
    const values = { card: 4111111111111111, amount: 5, list: [4111111111111111] };
    const contents = [
      { role: 'model', parts: [{ functionCall: { name: 'pay', args: values } }] },
      { role: 'user', parts: [{ functionResponse: { name: 'pay', response: values } }] },
    ];
    await post(served, '/v1beta/models/m:generateContent', { contents });
    const masked = { card: MASK, amount: 5, list: [MASK] };
    expect(bodyOf(provider)['contents']).toMatchObject([
      { parts: [{ functionCall: { args: masked } }] },
      { parts: [{ functionResponse: { response: masked } }] },
    ]);
  });

  test('a number in the JSON text of arguments becomes a string, so that the text stays JSON', async () => {
    await using provider = await llmProvider();
    await using served = await llmGateway(provider, {
      model: { provider: EVERY_FORMAT, guardrails: { request: [{ ...regex(), scope: ['toolInput'] }] } },
    });
    const text = `{"card": 4111111111111111,"note":"4111111111111111, \\" 4111111111111111","n":[4111111111111111]}`;
    const call = { id: 'c', type: 'function', function: { name: 'pay', arguments: text } };
    await post(served, '/v1/chat/completions', {
      model: 'm',
      messages: [{ role: 'assistant', content: null, tool_calls: [call] }],
    });
    const [message] = bodyOf(provider)['messages'] as [{ tool_calls: [{ function: { arguments: string } }] }];
    expect(JSON.parse(message.tool_calls[0].function.arguments)).toEqual({
      card: MASK,
      note: `${MASK}, " ${MASK}`,
      n: [MASK],
    });
  });

  test('a pattern rejects a request with status, body and headers of `rejection`', async () => {
    await using provider = await llmProvider();
    const rejection = {
      status: 400,
      body: '{"error":{"message":"no cards"}}',
      headers: {
        set: { 'content-type': 'application/json', 'x-why': 'card' },
        remove: ['x-content-type-options'],
      },
    };
    const item = { ...regex({ action: 'reject' }), rejection };
    await using served = await llmGateway(provider, {
      model: { provider: EVERY_FORMAT, guardrails: { request: [item] } },
    });
    const messages = [{ role: 'user', content: CARD }];
    for (const path of ['/v1/chat/completions', '/v1/messages']) {
      const reply = await post(served, path, { model: 'm', max_tokens: 9, messages });
      expect(reply).toMatchObject({ status: 400, text: rejection.body });
      expect(reply.headers).toMatchObject({ 'content-type': 'application/json', 'x-why': 'card' });
      expect(reply.headers).not.toHaveProperty('x-content-type-options');
    }
    expect(provider.received).toEqual([]);
    const line = await served.accessLine(1);
    expect(line).toMatchObject({ error: 'request rejected by regex guardrail', reason: 'Guardrail' });
    expect(served.accessLog.join('') + served.log.join('')).not.toContain('4111');
  });

  test('checks by patterns are counted by phase and outcome', async () => {
    await using provider = await llmProvider(answering(completion(CARD)));
    await using served = await llmGateway(provider, {
      model: { guardrails: { request: [regex({ action: 'reject' })], response: [regex()] } },
    });
    await chat(served);
    await chat(served, { ...CHAT, messages: [{ role: 'user', content: CARD }] });
    await served.accessLine(2);
    const metrics = await served.running.metrics.render();
    expect(metrics).toMatch(/gw_guardrail_checks_total\{.*phase="Request".*action="Allow".*\} 1/);
    expect(metrics).toMatch(/gw_guardrail_checks_total\{.*phase="Request".*action="Reject".*\} 1/);
    expect(metrics).toMatch(/gw_guardrail_checks_total\{.*phase="Response".*action="Mask".*\} 1/);
  });

  test('the body of a rejection may be a list of bytes, which are text', async () => {
    await using provider = await llmProvider();
    const guarded = (body: unknown) => ({
      model: {
        provider: EVERY_FORMAT,
        guardrails: { request: [{ ...regex({ action: 'reject' }), rejection: { body } }] },
      },
    });
    await using served = await llmGateway(provider, guarded([...Buffer.from('nö')]));
    const messages = [{ role: 'user', content: CARD }];
    expect(await post(served, '/v1/chat/completions', { model: 'm', messages })).toMatchObject({
      status: 403,
      text: 'nö',
    });
    for (const body of [[255], [256], ['a'], {}])
      await expect(llmGateway(provider, guarded(body))).rejects.toThrow(/rejection\.body/);
  });

  test('a rejection without settings is 403 with a text', async () => {
    await using provider = await llmProvider();
    await using served = await llmGateway(provider, {
      model: { provider: EVERY_FORMAT, guardrails: { request: [regex({ action: 'reject' })] } },
    });
    const reply = await chat(served, { ...CHAT, messages: [{ role: 'user', content: CARD }] });
    expect(reply).toMatchObject({
      status: 403,
      text: 'The request was rejected due to inappropriate content',
    });
    expect(reply.headers['content-type']).toBe('text/plain; charset=utf-8');
    expect((await chat(served)).status).toBe(200);
  });

  test('a text that is too long to check fails the call', async () => {
    await using provider = await llmProvider();
    await using served = await llmGateway(provider, {
      model: { provider: EVERY_FORMAT, guardrails: { request: [regex()] } },
      options: { limits: { guardedCharacters: 1_000 } },
    });
    const reply = await chat(served, { ...CHAT, messages: [{ role: 'user', content: 'x'.repeat(1_001) }] });
    expect([reply.status, errorOf(reply).code]).toEqual([413, 'request_too_large']);
    expect(errorOf(reply).message).toContain('a text of the request has more than 1000 characters');
    expect((await served.accessLine(1))['error']).toBe(errorOf(reply).message);
  });

  test('guardrails of `llm.policies` run after those of `llm` and before those of the model', async () => {
    await using provider = await llmProvider();
    const rule = (pattern: string) => ({ request: [regex({}, [{ pattern }])] });
    await using served = await llmGateway(provider, {
      llm: { guardrails: rule('aaa'), policies: { guardrails: rule('^<masked>$') } },
      model: { guardrails: rule('^<masked>x$') },
    });
    const content = async (text: string) => {
      await chat(served, { ...CHAT, messages: [{ role: 'user', content: text }] });
      return (bodyOf(provider)['messages'] as { content: string }[])[0]?.content;
    };
    expect(await content('aaax')).toBe('<masked>');
    expect(await content('aaay')).toBe('<masked>y');
  });
});

describe('guardrails with patterns on responses', () => {
  const guarded = (guardrails: object) => ({ model: { provider: EVERY_FORMAT, guardrails } });

  test('patterns mask every text of a chat completion', async () => {
    const message = (card: string) => ({
      role: 'assistant',
      content: `pay ${card}`,
      reasoning_content: `use ${card}`,
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'pay', arguments: `{"card":"${card}"}` } }],
    });
    const answer = (card: string) =>
      completion('', { choices: [{ index: 0, message: message(card), finish_reason: 'tool_calls' }] });
    await using provider = await llmProvider(answering(answer(CARD)));
    await using served = await llmGateway(provider, guarded({ response: [regex()] }));
    expect(JSON.parse((await chat(served)).text)).toEqual(JSON.parse(answer(MASK)));
  });

  test('patterns mask texts, thinking and inputs of tools in an answer of /v1/messages, and its signature is dropped', async () => {
    const answer = (card: string | number, signed: object) => ({
      id: 'm1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [
        { type: 'thinking', thinking: `use ${card}`, ...signed },
        { type: 'text', text: `first ${card}` },
        { type: 'tool_use', id: 't', name: 'pay', input: { card, amount: 5 } },
        { type: 'text', text: 'second' },
      ],
      stop_reason: 'tool_use',
      usage: { input_tokens: 1, output_tokens: 2 },
    });
    for (const card of [CARD, 4111111111111111]) {
      await using provider = await llmProvider(
        answering(JSON.stringify(answer(card, { signature: 'c2ln' }))),
      );
      await using served = await llmGateway(provider, guarded({ response: [regex()] }));
      const reply = await post(served, '/v1/messages', { model: 'm', max_tokens: 9, messages: [] });
      expect(JSON.parse(reply.text)).toEqual(answer(MASK, {}));
    }
  });

  test('patterns mask texts of a response, and drop its citations and probabilities', async () => {
    const item = (card: string, more: object) => [
      { type: 'reasoning', id: 'r', summary: [{ type: 'summary_text', text: `use ${card}` }] },
      {
        type: 'message',
        role: 'assistant',
        content: [{ type: 'output_text', text: `pay ${card}`, ...more }],
      },
      { type: 'function_call', call_id: 'c', name: 'pay', arguments: `{"card":"${card}"}` },
    ];
    const marks = {
      annotations: [{ type: 'url_citation', url: 'http://a', end_index: 9 }],
      logprobs: [{ token: CARD }],
    };
    const answer = { id: 'r1', object: 'response', instructions: CARD, output: item(CARD, marks) };
    await using provider = await llmProvider(answering(JSON.stringify(answer)));
    await using served = await llmGateway(provider, guarded({ response: [regex()] }));
    const reply = await post(served, '/v1/responses', { model: 'm', input: 'Hi', instructions: CARD });
    expect(JSON.parse(reply.text)).toEqual({
      ...answer,
      output: item(MASK, { annotations: [], logprobs: [] }),
    });
  });

  test.each(Object.keys(WIRES) as WireName[])(
    'a rejected stream of %s ends with an error event',
    async (format) => {
      const { path, request, events } = WIRES[format];
      const parts = ['word '.repeat(400), CARD.slice(0, 7), CARD.slice(7), ' word'.repeat(400)];
      await using provider = await llmProvider(
        streaming((response) => response.end(events('content', parts).join(''))),
      );
      const rejection = { body: 'no cards' };
      await using served = await llmGateway(
        provider,
        guarded({ response: [{ ...regex({ action: 'reject' }), rejection }] }),
      );
      const { text } = await post(served, path, request);
      expect(text).not.toContain('4111');
      expect(JSON.stringify(eventsIn(text).at(-1))).toContain('no cards');
      expect(text).not.toContain('[DONE]');
    },
  );

  test('a match that goes on in later events is not cut at what was held', async () => {
    const key = `sk-${'aB3'.repeat(60)}`;
    for (let before = 780; before < 1_060; before += 35) {
      const text = `${'x '.repeat(before / 2)}${key} end`;
      const parts = text.match(/.{1,10}/gs) as string[];
      await using upstream = await llmProvider(
        streaming((response) => response.end(WIRES.chat.events('content', parts).join(''))),
      );
      await using served = await llmGateway(
        upstream,
        guarded({ response: [regex({}, [{ builtin: 'apiKey' }])] }),
      );
      const reply = await post(served, WIRES.chat.path, WIRES.chat.request);
      expect(WIRES.chat.text('content', reply.text)).toBe(text.replace(key, '<API_KEY>'));
    }
  });

  test('with `streaming: Disabled`, streams are not checked and other responses are', async () => {
    let isStream = true;
    await using provider = await llmProvider((...all) =>
      isStream
        ? streaming((response) => response.end(WIRES.chat.events('content', [CARD]).join('')))(...all)
        : answering(completion(CARD))(...all),
    );
    await using served = await llmGateway(provider, guarded({ streaming: 'Disabled', response: [regex()] }));
    expect((await post(served, WIRES.chat.path, WIRES.chat.request)).text).toContain(CARD);
    isStream = false;
    expect((await chat(served)).text).toContain(MASK);
  });
});

describe('the configuration of guardrails', () => {
  test.each([
    ['an item without a kind', { request: [{ rejection: {} }] }, 'expected exactly one of'],
    [
      'an item of two kinds',
      { request: [{ ...regex(), webhook: { target: { host: 'a:1' } } }] },
      'exactly one of',
    ],
    ['an unknown scope', { request: [{ ...regex(), scope: ['tools'] }] }, 'scope'],
    ['an empty scope', { request: [{ ...regex(), scope: [] }] }, 'scope'],
    ['a scope of a response', { response: [{ ...regex(), scope: ['messages'] }] }, 'scope'],
    [
      'a scope of a webhook',
      { request: [{ webhook: { target: { host: 'a:1' } }, scope: ['toolOutput'] }] },
      '`webhook` always checks system prompts and messages',
    ],
    ['a status of 99', { request: [{ ...regex(), rejection: { status: 99 } }] }, 'status'],
    ['an invalid pattern', { request: [regex({}, [{ pattern: '(?=a)' }])] }, 'invalid regular expression'],
    ['an unknown mode of streaming', { streaming: 'enabled' }, 'streaming'],
  ])('%s is an error', async (_, guardrails, message) => {
    await expect(llmGateway({ address: '127.0.0.1:1' }, { model: { guardrails } })).rejects.toThrow(message);
  });
});
