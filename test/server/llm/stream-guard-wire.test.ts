import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { describe, expect, test } from 'vitest';
import {
  CHAT,
  chat,
  chunk,
  DONE,
  FINISH,
  guardrail,
  llmGateway,
  llmProvider,
  streaming,
  webhook,
} from '../../kit/llm-provider.ts';
import { collected } from '../../kit/llm-stream.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

const SECRET = 'sk-THE-SECRET-0123456789';
const hide = (text: string): string => text.replaceAll(SECRET, '[masked]');

const STREAM = { ...CHAT, stream: true };
const long = Array.from({ length: 300 }, (_, index) => chunk({ content: `word ${index} ` })).join('');

describe('guarded streams over HTTP', () => {
  test('a guarded stream is masked, and the access log has the time that it was held', async () => {
    const parts = [chunk({ content: SECRET.slice(0, 5) }), chunk({ content: SECRET.slice(5) })].join('');
    await using provider = await llmProvider(
      streaming((response) => response.end(long + parts + long + FINISH + DONE)),
    );
    await using hook = await guardrail(({ choices }) => ({
      body: {
        choices: choices?.map(({ message: { role, content } }) => ({
          message: { role, content: hide(content) },
        })),
      },
    }));
    await using served = await llmGateway(provider, { model: { guardrails: { response: [webhook(hook)] } } });
    const result = collected((await chat(served, STREAM)).text);
    const words = collected(long).texts[0] as string;
    expect(result).toMatchObject({ texts: [`${words}[masked]${words}`], ends: ['stop'], done: true });
    expect((await served.accessLine(1))['gw.ai.stream.held']).toMatch(/^\d+ms$/);
  });

  test('a rejected guarded stream ends with an error event and without [DONE], and the provider call is aborted', async () => {
    let left = false;
    await using provider = await llmProvider(
      streaming((response) => {
        response.write(long + chunk({ content: SECRET }) + long);
        response.once('close', () => {
          left = true;
        });
      }),
    );
    await using hook = await guardrail(({ choices }) =>
      choices?.[0]?.message.content.includes(SECRET) ? { body: 'not for you', status_code: 403 } : {},
    );
    await using served = await llmGateway(provider, { model: { guardrails: { response: [webhook(hook)] } } });
    const { text } = await chat(served, STREAM);
    expect(text).not.toContain(SECRET);
    expect(text).not.toContain('[DONE]');
    expect(
      text.endsWith(
        'data: {"error":{"message":"not for you","type":"guardrail_blocked","code":"guardrail_intervention"}}\n\n',
      ),
    ).toBe(true);
    await until(() => left);
    expect(await served.accessLine(1)).toMatchObject({ reason: 'Guardrail' });
  });

  test('a guarded stream whose webhook fails is blocked', async () => {
    await using provider = await llmProvider(streaming((response) => response.end(long + DONE)));
    await using hook = await httpUpstream((_, response) => response.writeHead(500).end('{"action":{}}'));
    await using served = await llmGateway(provider, { model: { guardrails: { response: [webhook(hook)] } } });
    const { text } = await chat(served, STREAM);
    expect(text).toBe(
      'data: {"error":{"message":"Content blocked by guardrail policy","type":"guardrail_blocked","code":"guardrail_intervention"}}\n\n',
    );
    expect((await served.accessLine(1))['error.detail']).toBe(
      `${hook.address}: the webhook responded with 500`,
    );
  });

  test('a guarded stream of a client that does not read applies back-pressure to the provider', async () => {
    let written = 0;
    const text = chunk({ content: 'x'.repeat(8_000) });
    await using provider = await llmProvider(
      streaming((response) => {
        const more = (): void => {
          while (!response.destroyed && written < 100_000_000) {
            written += text.length;
            if (!response.write(text)) break;
          }
        };
        response.on('drain', more);
        more();
      }),
    );
    await using hook = await guardrail(() => ({}));
    await using served = await llmGateway(provider, { model: { guardrails: { response: [webhook(hook)] } } });
    const call = request(`${served.url}/v1/chat/completions`, { method: 'POST' });
    call.on('error', () => undefined).end(JSON.stringify(STREAM));
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    response.on('error', () => undefined).pause();
    let before = -1;
    // Webhooks answer within milliseconds here, so a stalled stream waits for the client.
    await until(async () => {
      before = hook.received.length;
      await new Promise((resolve) => setTimeout(resolve, 300));
      return before > 0 && hook.received.length === before;
    });
    expect(written).toBeLessThan(30_000_000);
    response.destroy();
  });

  test('a guarded stream whose client disconnects during a webhook call ends cleanly', async () => {
    await using provider = await llmProvider(streaming((response) => response.write(long)));
    let asked = 0;
    let left = 0;
    await using hook = await httpUpstream((_, response) => {
      asked += 1;
      response.once('close', () => {
        left += 1;
      });
    });
    await using served = await llmGateway(provider, { model: { guardrails: { response: [webhook(hook)] } } });
    const call = request(`${served.url}/v1/chat/completions`, { method: 'POST' });
    call.on('error', () => undefined).end(JSON.stringify(STREAM));
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    response.on('error', () => undefined).resume();
    await until(() => asked === 1);
    response.destroy();
    await until(() => left === 1);
    // An unhandled rejection would fail the test run here.
    await served.accessLine(1);
    expect(served.accessLog).toHaveLength(1);
  });

  test('a guarded stream of an endpoint with unknown events is rejected before the provider is asked', async () => {
    await using provider = await llmProvider();
    await using hook = await guardrail(() => ({}));
    await using served = await llmGateway(provider, { model: { guardrails: { response: [webhook(hook)] } } });
    const reply = await fetch(`${served.url}/v1/images/generations`, {
      method: 'POST',
      body: JSON.stringify({ model: 'm', prompt: 'x', stream: true }),
    });
    expect(reply.status).toBe(400);
    expect(await reply.json()).toMatchObject({ error: { code: 'guardrail_unsupported' } });
    expect(provider.received).toEqual([]);
  });
});
