import { env } from 'node:process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { blocksIn } from '../../kit/documentation.ts';
import { gateway } from '../../kit/gateway.ts';
import { send } from '../../kit/send.ts';
import { chatServer } from '../chat-server.ts';
import { type Phoenix, startPhoenix } from './phoenix.ts';

let phoenix: Phoenix;
beforeAll(async () => {
  phoenix = await startPhoenix();
}, 300_000);
afterAll(() => phoenix[Symbol.asyncDispose]());

/** The configuration of the guide, for this Phoenix and a provider of the test. */
function guided(provider: string): string {
  const text = blocksIn('docs/guides/langfuse-phoenix.md').find(({ language }) => language === 'yaml')?.text;
  return (text ?? '')
    .replace('http://localhost:6006', phoenix.url)
    .replace('port: 4000', 'port: 0')
    .replace('apiKey: $OPENAI_API_KEY', `apiKey: $OPENAI_API_KEY, baseUrl: "http://${provider}/v1"`)
    .replace('  tracing:', '  adminAddr: off\n  tracing:');
}

// strands-agents/harness-sdk#1267: tokens in two spans of a trace were shown twice. envoyproxy/ai-gateway#1221: calls were in
// no session. Arize-ai/phoenix#10622: attributes of OpenTelemetry's conventions were not shown.
test('Phoenix shows the model, input, output, session, cost, and tokens once, of a chat call with the guide', async () => {
  await using provider = await chatServer();
  const gate = await gateway(guided(provider.address), {
    env: { ...env, OPENAI_API_KEY: 'sk-test', ANN_KEY: 'key-of-ann' },
  });
  const answer = await send(`${gate.url}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: 'Bearer key-of-ann',
      'content-type': 'application/json',
      'x-session-id': 'chat-17',
    },
    body: JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hello' }] }),
  });
  expect(answer.status).toBe(200);
  await gate.close();
  const spans = await phoenix.spans(2);
  expect(spans).toHaveLength(2);
  const request = spans.find(({ parentId }) => parentId === null);
  const call = spans.find(({ parentId }) => parentId !== null);
  expect(request).toMatchObject({
    spanKind: 'chain',
    input: { value: 'Hello' },
    output: { value: 'You said: Hello' },
    tokenCountPrompt: null,
    tokenCountCompletion: null,
    cumulativeTokenCountTotal: 19,
    trace: { session: { sessionId: 'chat-17' } },
    attributes: { user: { id: 'ann' } },
  });
  expect(call).toMatchObject({
    name: 'chat gpt-4o-mini',
    spanKind: 'llm',
    parentId: request?.spanId,
    tokenCountPrompt: 12,
    tokenCountCompletion: 7,
    cumulativeTokenCountTotal: 19,
    attributes: { llm: { model_name: 'gpt-4o-mini' } },
  });
  // Prices of Phoenix: 0.15 and 0.60 USD for a million tokens.
  expect(call?.costSummary?.total.cost).toBeCloseTo((12 * 0.15 + 7 * 0.6) / 1e6, 9);
});
