import { describe, expect, test } from 'vitest';
import type { RequestContext } from '../../src/server/kernel/request/request-context.ts';
import { llmCall } from '../../src/server/llm/llm-call.ts';
import { chaos, mcpConfig } from '../kit/config.ts';
import { gateway } from '../kit/gateway.ts';
import {
  answering,
  chat,
  chunk,
  completion,
  DONE,
  EVERY_FORMAT,
  FINISH,
  guardrail,
  llmGateway,
  llmProvider,
  streaming,
  webhook,
} from '../kit/llm-provider.ts';
import { openSession } from '../kit/mcp.ts';
import { collector } from '../kit/otlp.ts';
import { proxyGateway } from '../kit/routes.ts';
import { send } from '../kit/send.ts';
import { until } from '../kit/until.ts';
import { httpUpstream } from '../kit/upstream.ts';

/** Payloads in log expressions: `mcp.tool.*`, `llm.prompt`, `llm.completion` and bodies. */

const logging = (add: Record<string, string>) => ({ frontendPolicies: { accessLog: { add } } });

describe('logged tool calls', () => {
  const TOOL = {
    t_args: 'toJson(mcp.tool.arguments)',
    t_result: 'mcp.tool.result.content[0].text',
    t_error: 'toJson(mcp.tool.error)',
  };

  async function logged(targets: readonly object[], name: string, args?: object) {
    const config = { ...JSON.parse(mcpConfig(targets)), ...logging(TOOL) };
    await using gate = await gateway(JSON.stringify(config));
    const session = await openSession(`${gate.url}/mcp`);
    await session.request('tools/call', { name, ...(args === undefined ? {} : { arguments: args }) });
    await until(() => gate.accessLog.some((line) => line.includes('mcp.method.name=tools/call')));
    const at = gate.accessLog.findIndex((line) => line.includes('mcp.method.name=tools/call'));
    const line = await gate.accessLine(at + 1);
    await session.end();
    return [line['t_args'], line['t_result'], line['t_error']];
  }

  test('the access log reads the arguments and the result of a tool call', async () => {
    expect(await logged([chaos('one', '--tools=read')], 'read', { path: '/a' })).toEqual([
      '{"path":"/a"}',
      'one read',
      undefined,
    ]);
    expect(await logged([chaos('one', '--tools=read'), chaos('two')], 'one_read')).toEqual([
      '{}',
      'one read',
      undefined,
    ]);
  });

  test('the access log has no tool result over the size limit', async () => {
    expect(await logged([chaos('one')], 'big', { bytes: 300_000 })).toEqual([
      '{"bytes":300000}',
      undefined,
      undefined,
    ]);
  });

  test('the access log reads the error of a tool call', async () => {
    expect(await logged([chaos('one')], 'fail', { code: -32001, message: 'no' })).toEqual([
      '{"code":-32001,"message":"no"}',
      undefined,
      '{"code":-32001,"message":"no"}',
    ]);
    expect(await logged([chaos('one', '--tools=read'), chaos('two')], 'nosuch_read', { a: 1 })).toEqual([
      '{"a":1}',
      undefined,
      '{"code":-32602,"message":"Unknown tool: nosuch_read"}',
    ]);
  });
});

test('mcpAuthorization rules read the arguments of a tool call, which lists do not have', async () => {
  const rules = [
    'mcp.tool.name == "read" && (!has(mcp.tool.arguments) || mcp.tool.arguments.path.startsWith("/tmp/"))',
    'mcp.tool.name == "strict" && mcp.tool.arguments.ok',
  ];
  const route = { policies: { mcpAuthorization: { rules } } };
  await using gate = await gateway(mcpConfig([chaos('one', '--tools=read,strict')], { route }));
  const session = await openSession(`${gate.url}/mcp`);
  const { tools } = (await session.request('tools/list')).result;
  expect(tools.map(({ name }: { name: string }) => name)).toEqual(['read']);
  const call = async (name: string, args?: object) =>
    (await session.request('tools/call', { name, ...(args === undefined ? {} : { arguments: args }) })).result
      ?.content[0].text;
  expect(await call('read', { path: '/tmp/a' })).toBe('one read');
  expect(await call('read', { path: '/etc/passwd' })).toBeUndefined();
  // Without arguments there is no path that a rule could accept.
  expect(await call('read')).toBeUndefined();
  expect(await call('strict', { ok: true })).toBe('one strict');
  await session.end();
});

describe('logged LLM calls', () => {
  const LLM = {
    p: 'toJson(llm.prompt)',
    c: 'toJson(llm.completion)',
    calls: 'toJson(llm.toolCalls)',
  };
  const more = logging(LLM);
  const ASK = {
    model: 'm',
    messages: [
      { role: 'system', content: 'Be kind.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Hi ' },
          { type: 'image_url', image_url: { url: 'data:,' } },
          { type: 'text', text: 'you' },
        ],
      },
    ],
  };
  const PROMPT = '[{"role":"system","content":"Be kind."},{"role":"user","content":"Hi you"}]';
  const CALL = { id: 'c1', type: 'function', function: { name: 'add', arguments: '{"a":1}' } };

  test('the access log reads the prompt, completion and tool calls of an LLM call', async () => {
    const message = { role: 'assistant', content: 'Sure.', tool_calls: [CALL] };
    await using provider = await llmProvider(
      answering(
        completion('', {
          choices: [
            { index: 0, message },
            { index: 1, message: { content: 'No.' } },
          ],
        }),
      ),
    );
    await using served = await llmGateway(provider, { more });
    await chat(served, ASK);
    expect(await served.accessLine(1)).toMatchObject({
      p: PROMPT,
      c: '["Sure.","No."]',
      calls: '[{"id":"c1","name":"add","arguments":{"a":1}}]',
    });
  });

  test('the access log reads the assembled completion of an LLM stream', async () => {
    const call = (index: number, fn: object, rest: object = {}) =>
      chunk({ tool_calls: [{ index, ...rest, function: fn }] });
    await using provider = await llmProvider(
      streaming((response) =>
        response.end(
          [
            ...['Hel', 'lo', '.'].map((content) => chunk({ content })),
            call(0, { name: 'add', arguments: '' }, { id: 'c1' }),
            call(0, { arguments: '{"a"' }),
            call(0, { arguments: ':1}' }),
            // vercel/ai#18440: all calls have the number 0.
            call(0, { name: 'sub', arguments: '{}' }),
            call(1, { name: 'mul', arguments: '{}' }, { id: 'c3' }),
            FINISH,
            DONE,
          ].join(''),
        ),
      ),
    );
    await using served = await llmGateway(provider, { more });
    await chat(served, { ...ASK, stream: true });
    expect(await served.accessLine(1)).toMatchObject({
      p: PROMPT,
      c: '["Hello."]',
      calls:
        '[{"id":"c1","name":"add","arguments":{"a":1}},{"name":"sub","arguments":{}},{"id":"c3","name":"mul","arguments":{}}]',
    });
  });

  test.each([false, true])(
    'the access log shows LLM content as masked by guardrails (stream: %s)',
    async (stream) => {
      await using guard = await guardrail(({ messages, choices }) => ({
        body:
          messages !== undefined
            ? {
                messages: messages.map((each) => ({
                  ...each,
                  content: each.content.replace('4711', '****'),
                })),
              }
            : {
                choices: choices?.map((choice) => ({
                  message: { ...choice.message, content: choice.message.content.replace('0815', '****') },
                })),
              },
      }));
      await using provider = await llmProvider(
        stream
          ? streaming((response) => response.end(chunk({ content: 'code 0815' }) + FINISH + DONE))
          : answering(completion('code 0815')),
      );
      const guardrails = { request: [webhook(guard)], response: [webhook(guard)] };
      await using served = await llmGateway(provider, { llm: { guardrails }, more });
      await chat(served, { model: 'm', messages: [{ role: 'user', content: 'PIN 4711' }], stream });
      expect(await served.accessLine(1)).toMatchObject({
        p: '[{"role":"user","content":"PIN ****"}]',
        c: '["code ****"]',
      });
    },
  );

  test('the access log has neither prompt nor completion of a call that a guardrail rejects', async () => {
    await using guard = await guardrail(() => ({ body: 'no', status_code: 403 }));
    await using provider = await llmProvider();
    for (const guardrails of [{ request: [webhook(guard)] }, { response: [webhook(guard)] }]) {
      await using served = await llmGateway(provider, { llm: { guardrails }, more });
      expect((await chat(served, ASK)).status).toBe(403);
      const line = await served.accessLine(1);
      expect(line['c']).toBeUndefined();
      expect(line['p']).toBe('request' in guardrails ? undefined : PROMPT);
    }
  });

  test.each([
    [
      '/v1/responses',
      { model: 'm', instructions: 'Be kind.', input: 'Hi you' },
      {
        output: [
          {
            type: 'message',
            content: [
              { type: 'output_text', text: 'Hel' },
              { type: 'output_text', text: 'lo' },
            ],
          },
          { type: 'function_call', call_id: 'c1', name: 'add', arguments: '{"a":1}' },
        ],
      },
    ],
    [
      '/v1/messages',
      { model: 'm', system: 'Be kind.', messages: [{ role: 'user', content: 'Hi you' }] },
      {
        content: [
          { type: 'text', text: 'Hello' },
          { type: 'tool_use', id: 'c1', name: 'add', input: { a: 1 } },
        ],
      },
    ],
  ])('the access log reads prompt and completion in the format of %s', async (path, ask, answer) => {
    await using provider = await llmProvider(answering(JSON.stringify(answer)));
    await using served = await llmGateway(provider, { more, model: { provider: EVERY_FORMAT } });
    await send(served.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(ask),
    });
    expect(await served.accessLine(1)).toMatchObject({
      p: PROMPT,
      c: '["Hello"]',
      calls: '[{"id":"c1","name":"add","arguments":{"a":1}}]',
    });
  });

  test('the access log keeps at most the size limit of prompt and completion', async () => {
    await using provider = await llmProvider(answering(completion('x'.repeat(300_000))));
    const sizes = logging({ p: 'size(llm.prompt[0].content)', c: 'size(llm.completion[0])' });
    await using served = await llmGateway(provider, { more: sizes });
    await chat(served, { model: 'm', messages: [{ role: 'user', content: 'y'.repeat(300_000) }] });
    expect(await served.accessLine(1)).toMatchObject({ p: String(256 * 1024), c: String(256 * 1024) });
  });

  test('prompt and completion are not kept when no expression reads them', async () => {
    const open: RequestContext[] = [];
    await using provider = await llmProvider((request, response, received) => {
      open.push(...served.running.openRequests);
      return answering(completion('Hello.'))(request, response, received);
    });
    await using served = await llmGateway(provider, { more: logging({ model: 'llm.requestModel' }) });
    await chat(served, ASK);
    await served.accessLine(1);
    expect(open).toHaveLength(1);
    const call = llmCall.get(open[0] as RequestContext);
    expect(call).toBeDefined();
    expect([call?.prompt, call?.completion]).toEqual([undefined, undefined]);
  });
});

test('span attributes read bodies like access log fields', async () => {
  await using receiver = await collector('http');
  await using backend = await httpUpstream((_, response) => response.end('answer'));
  const tracing = {
    host: receiver.url,
    protocol: 'http',
    randomSampling: true,
    attributes: { asked: 'string(request.body)', answered: 'string(response.body)' },
  };
  await using gate = await proxyGateway(backend.address, {}, { frontendPolicies: { tracing } });
  await send(gate.url, { method: 'POST', body: 'question' });
  await until(() => receiver.spans.some(({ kind }) => kind === 2));
  expect(receiver.spans.find(({ kind }) => kind === 2)?.attributes).toMatchObject({
    asked: 'question',
    answered: 'answer',
  });
});
