import { expect, test } from 'vitest';
import { mcpConfig } from '../../../../kit/config.ts';
import { openEvents } from '../../../../kit/event-stream.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { openSession } from '../../../../kit/mcp.ts';
import { MODERN, metaKey } from '../../../../kit/modern.ts';
import { until } from '../../../../kit/until.ts';

/** A server over stdio of revision 2026-07-28 that acknowledges its first `subscriptions/listen` only after the second. */
const script = `
  const lines = require('node:readline').createInterface({ input: process.stdin });
  const capabilities = { tools: { listChanged: true }, resources: { subscribe: true } };
  const listens = [];
  const write = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
  lines.on('line', (line) => {
    const { id, method, params } = JSON.parse(line);
    if (method === 'subscriptions/listen') {
      listens.push({ id, notifications: params.notifications });
      if (listens.length === 2)
        for (const { id, notifications } of listens)
          write({
            method: 'notifications/subscriptions/acknowledged',
            params: { _meta: { '${metaKey('subscriptionId')}': id }, notifications },
          });
    } else if (method === 'initialize') write({ id, error: { code: -32601, message: 'no such method' } });
    else if (id !== undefined) {
      const text = { content: [{ type: 'text', text: String(listens.length) }] };
      const discovered = { supportedVersions: ['${MODERN}'], capabilities };
      write({ id, result: { resultType: 'complete', ...(method === 'tools/call' ? text : discovered) } });
    }
  });`;

test('the late acknowledgment of a replaced subscriptions/listen does not fail the subscription that replaced it', async () => {
  const stdio = { cmd: process.execPath, args: ['-e', script] };
  await using gate = await gateway(mcpConfig([{ name: 's', stdio }]));
  const session = await openSession(`${gate.url}/mcp`);
  await using _stream = await openEvents(session.url, { session: session.id });
  await until(async () => {
    const { result } = await session.request('tools/call', { name: 'count' });
    return result.content[0].text === '1';
  });
  const { result } = await session.request('resources/subscribe', { uri: 'file:///a' });
  expect(result).toEqual({});
});
