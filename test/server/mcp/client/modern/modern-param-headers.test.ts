import { describe, expect, test } from 'vitest';
import { mcpConfig } from '../../../../kit/config.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { type Json, openSession } from '../../../../kit/mcp.ts';
import { reply } from '../../../../kit/mcp-upstream.ts';
import { MODERN, metaKey, modernCall, modernUpstream } from '../../../../kit/modern.ts';

const SCHEMA = {
  type: 'object',
  properties: {
    region: { type: 'string', 'x-mcp-header': 'Region' },
    options: { type: 'object', properties: { count: { type: 'integer', 'x-mcp-header': 'Count' } } },
  },
};
const ARGUMENTS = { region: 'zürich', options: { count: 42 } };
const ENCODED = `=?base64?${Buffer.from('zürich').toString('base64')}?=`;

/** A server over stdio of revision 2026-07-28 with that tool. */
const script = `
  const lines = require('node:readline').createInterface({ input: process.stdin });
  const results = {
    'server/discover': { supportedVersions: ['${MODERN}'], capabilities: { tools: {} } },
    'tools/list': { tools: [{ name: 'run', inputSchema: ${JSON.stringify(SCHEMA)} }] },
    'tools/call': { content: [{ type: 'text', text: 'ran' }] },
  };
  lines.on('line', (line) => {
    const { id, method } = JSON.parse(line);
    const result = { resultType: 'complete', ...results[method] };
    process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
  });`;
const stdio = { name: 's', stdio: { cmd: process.execPath, args: ['-e', script] } };

describe('headers that repeat parameters of a tool of a stdio target', () => {
  test.each([
    ['are equal', { 'mcp-param-region': ENCODED, 'mcp-param-count': '42' }, undefined],
    [
      'have an integer written differently',
      { 'mcp-param-region': ENCODED, 'mcp-param-count': '42.0' },
      undefined,
    ],
    [
      'lack one',
      { 'mcp-param-region': ENCODED },
      /mcp-param-count is missing, but params.arguments.options.count/,
    ],
    ['differ', { 'mcp-param-region': 'eu', 'mcp-param-count': '42' }, /mcp-param-region is "eu"/],
    ['are malformed', { 'mcp-param-region': '=?base64?%?=', 'mcp-param-count': '42' }, /mcp-param-region/],
    [
      'are base64 without padding',
      { 'mcp-param-region': ENCODED.replace('=?=', '?='), 'mcp-param-count': '42' },
      /mcp-param-region/,
    ],
  ])('a call whose headers %s is answered accordingly', async (_what, headers, problem) => {
    await using gate = await gateway(mcpConfig([stdio]));
    const { status, error, result } = await modernCall(`${gate.url}/mcp`, 'run', ARGUMENTS, { headers });
    if (problem === undefined) expect(result.content[0].text).toBe('ran');
    else {
      expect([status, error.code]).toEqual([400, -32020]);
      expect(error.message).toMatch(problem);
    }
  });

  test('a parameter that is null or absent needs no header', async () => {
    await using gate = await gateway(mcpConfig([stdio]));
    const { result } = await modernCall(`${gate.url}/mcp`, 'run', { region: null });
    expect(result.content[0].text).toBe('ran');
  });
});

const strictUpstream = () =>
  modernUpstream('up', ({ message, headers }, response) => {
    if (message.method === 'tools/list')
      reply(response, message, { resultType: 'complete', tools: [{ name: 'run', inputSchema: SCHEMA }] });
    else if (message.method === 'tools/call' && headers['mcp-param-region'] === undefined) {
      response.statusCode = 400;
      reply(response, message, { error: { code: -32020, message: 'mcp-param-region is missing' } });
    } else return false;
    return true;
  });

describe('headers that repeat parameters at an HTTP target', () => {
  test('a client with a session does not know them: the gateway lists the tools and repeats the call', async () => {
    await using up = await strictUpstream();
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
    const session = await openSession(`${gate.url}/mcp`);
    const call = { name: 'run', arguments: ARGUMENTS };
    expect((await session.request('tools/call', call)).error).toBeUndefined();
    expect((await session.request('tools/call', call)).error).toBeUndefined();
    const sent = up.of('tools/call').map(({ headers }) => headers['mcp-param-region']);
    expect(sent).toEqual([undefined, ENCODED, ENCODED]);
    expect((up.of('tools/call')[1] as Json).headers['mcp-param-count']).toBe('42');
  });

  test('a guardrail that masks an argument masks its header too', async () => {
    await using up = await strictUpstream();
    const processors = [{ kind: 'regex', action: 'mask', rules: [{ pattern: 'secret' }] }];
    const route = { policies: { mcpGuardrails: { processors } } };
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }], { route }));
    const headers = { 'mcp-param-region': 'a secret' };
    const { error } = await modernCall(`${gate.url}/mcp`, 'run', { region: 'a secret' }, { headers });
    expect(error).toBeUndefined();
    const [call] = up.of('tools/call') as Json[];
    expect(call.message.params.arguments.region).not.toContain('secret');
    expect(call.headers['mcp-param-region']).not.toContain('secret');
    expect(call.message.params._meta[metaKey('protocolVersion')]).toBe(MODERN);
  });
});
