import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { mcpConfig } from '../../kit/config.ts';
import { gateway } from '../../kit/gateway.ts';
import { openSession, post } from '../../kit/mcp.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';

// `mcp-authentication/sessions.test.ts` has the same for tokens.

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` });
const hash = `{SHA}${createHash('sha1').update('same').digest('base64')}`;

test.each([
  [
    'another key of the same client',
    {
      apiKey: { mode: 'strict', keys: ['one', 'two'].map((key) => ({ key, metadata: { name: 'client' } })) },
    },
    bearer('one'),
    bearer('two'),
  ],
  [
    'a user whose name differs in case',
    { basicAuth: { mode: 'strict', htpasswd: `ann:${hash}\nAnn:${hash}` } },
    basic('ann:same'),
    basic('Ann:same'),
  ],
])('an MCP session is not found by %s', async (_, policies, own, other) => {
  await using target = await mcpUpstream();
  const targets = [{ name: 'remote', mcp: { host: target.url } }];
  await using gate = await gateway(mcpConfig(targets, { route: { policies } }));
  const session = await openSession(gate.url, own);
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  const status = async (headers: Record<string, string>) =>
    (await post(gate.url, list, { ...headers, 'mcp-session-id': session.id })).status;
  expect(await status(other)).toBe(404);
  expect(await status(own)).toBe(200);
});
