import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { chaos } from '../../kit/config.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { answering, CHAT, completion, guardrail, llmProvider, webhook } from '../../kit/llm-provider.ts';
import { openSession } from '../../kit/mcp.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { refusingPort } from '../../kit/upstream.ts';

// Lines of the access log byte for byte, in both formats. Names and order are those of upstream's wire format.
// `vitest -u` updates the files; review the diff.

const PRICES = {
  providers: {
    openai: { models: { 'acme-mini-1': { rates: { input: '0.20', output: '1.00', cacheRead: '0.05' } } } },
  },
};
const USAGE = {
  prompt_tokens: 12,
  completion_tokens: 7,
  prompt_tokens_details: { cached_tokens: 4 },
  completion_tokens_details: { reasoning_tokens: 2 },
};

interface Scene extends AsyncDisposable {
  readonly gate: TestGateway;
  /** Sends a chat completion. */
  chat(content: string): Promise<unknown>;
  /** The lines so far, with placeholders for values that differ between runs. */
  lines(count: number): Promise<string[]>;
}

async function scene(format: 'text' | 'json'): Promise<Scene> {
  const provider = await llmProvider(answering(completion('555-1234', { usage: USAGE })));
  const before = await guardrail(({ messages }) =>
    messages?.[0]?.content === 'bad'
      ? { body: 'no "bad" words', status_code: 403, reason: 'r' }
      : { reason: 'ok' },
  );
  const after = await guardrail(() => ({
    body: { choices: [{ message: { role: 'assistant', content: '<phone>' } }] },
    reason: 'a phone number',
  }));
  const closed = await refusingPort();
  const at = (pathPrefix: string): object[] => [{ path: { pathPrefix } }];
  const gate = await gateway(
    JSON.stringify({
      config: {
        adminAddr: 'off',
        connectionTerminationDeadline: '100ms',
        logging: { format },
        modelCatalog: [{ inline: PRICES }],
      },
      frontendPolicies: {
        accessLog: {
          add: {
            agent: 'request.headers["user-agent"]',
            half: '0.5',
            whole: '1.0',
            list: '["a b", 1, null]',
            object: '{"k": true}',
          },
        },
      },
      gateways: {
        edge: {
          port: 0,
          routes: [
            { name: 'tools', matches: at('/mcp'), backends: [{ mcp: { targets: [chaos('one')] } }] },
            { name: 'gone', matches: at('/gone'), backends: [{ host: `127.0.0.1:${closed}` }] },
          ],
        },
      },
      llm: {
        port: 0,
        models: [
          {
            name: '*',
            provider: 'oaiCompat',
            params: { baseUrl: `http://${provider.address}/v1` },
            guardrails: { request: [webhook(before)], response: [webhook(after)] },
          },
        ],
      },
    }),
  );
  const settled = (line: string): string =>
    line
      .replace(/\d{4}-\d\d-\d\dT[\d:]{8}\.\d{6}Z/, 'TIME')
      .replace(/(src\.addr"?[=:]"?)127\.0\.0\.1:\d+/, '$1CLIENT')
      .replace(/(http\.host"?[=:]"?)127\.0\.0\.1:\d+/, '$1HOST')
      .replaceAll(`127.0.0.1:${closed}`, 'CLOSED')
      .replaceAll(provider.address, 'PROVIDER')
      .replace(/(duration"?[=:]"?)\d+ms/, '$1Nms')
      .replace(/(mcp\.session\.id"?[=:]"?)[\w-]{12}/, '$1SESSION');
  return {
    gate,
    chat: (content) =>
      send(`http://127.0.0.1:${gate.ports[1]}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'user-agent': 'a "b" c' },
        body: JSON.stringify({
          ...CHAT,
          messages: [{ role: 'user', content }],
          temperature: 0.5,
          max_tokens: 100,
          seed: 7,
        }),
      }),
    lines: async (count) => {
      await until(() => gate.accessLog.length >= count);
      return gate.accessLog.map(settled);
    },
    [Symbol.asyncDispose]: async () => {
      await gate.close();
      await Promise.all([provider, before, after].map((server) => server.close()));
    },
  };
}

async function llm({ chat, lines }: Scene): Promise<string[]> {
  await chat('Hi');
  await chat('bad');
  return lines(2);
}

async function failures({ gate, lines }: Scene): Promise<string[]> {
  const headers = { 'user-agent': 'x\ty' };
  await send(`${gate.url}/gone?q=a%20b&"=1`, { target: '/gone?q=a%20b&"=1', headers });
  await send(`${gate.url}/else`, { headers });
  return lines(2);
}

async function mcp({ gate, lines }: Scene): Promise<string[]> {
  const session = await openSession(`${gate.url}/mcp`);
  const hostile = 'no "disk"\n\u001b[2J left';
  for (const args of [{}, { code: -32603, message: hostile }, { code: -1, message: 'disk' }])
    await session.request('tools/call', { name: 'fail', arguments: args });
  return (await lines(5)).slice(2);
}

describe.each(['text', 'json'] as const)('access log lines in %s', (format) => {
  test.each([
    ['llm', 'an LLM call with usage, cost and parameters, and one that a guardrail rejected', llm],
    ['failures', 'failures, with a quote in a path and in an added field', failures],
    ['mcp', 'a tool result with isError and an MCP error with a hostile text', mcp],
  ] as const)('access log lines match the golden file %s: %s', async (name, _, act) => {
    await using made = await scene(format);
    await expect((await act(made)).join('')).toMatchFileSnapshot(
      fileURLToPath(new URL(`golden/access-log-${name}.${format}.txt`, import.meta.url)),
    );
  });
});
