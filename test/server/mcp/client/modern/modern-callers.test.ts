import { writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../../../kit/config.ts';
import { temporaryFolder } from '../../../../kit/folder.ts';
import { gateway } from '../../../../kit/gateway.ts';
import type { Json } from '../../../../kit/mcp.ts';
import { mcpUpstream, reply } from '../../../../kit/mcp-upstream.ts';
import { event, MODERN, modern, modernCall, modernEvents, modernUpstream } from '../../../../kit/modern.ts';
import { until } from '../../../../kit/until.ts';

const pid = async (url: string, asking?: object): Promise<string> =>
  (await modernCall(url, 'pid', {}, asking)).result.content[0].text;
const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

describe('callers of revision 2026-07-28 at targets with sessions', () => {
  test('requests of one client share a child; other credentials or capabilities get their own', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const url = `${gate.url}/mcp`;
    const alice = await pid(url, as('alice'));
    expect(await pid(url, as('alice'))).toBe(alice);
    expect(await pid(url, as('bob'))).not.toBe(alice);
    expect(await pid(url, { ...as('alice'), capabilities: { roots: {} } })).not.toBe(alice);
  });

  test('concurrent calls of one client without capabilities share a child', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const pids = await Promise.all([1, 2, 3, 4].map(() => pid(`${gate.url}/mcp`)));
    expect(new Set(pids).size).toBe(1);
  });

  test('idle callers make room for others when the gateway has as many sessions as it may have', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')], { config: { mcp: { maxSessions: 2 } } }));
    const url = `${gate.url}/mcp`;
    const first = await pid(url, as('1'));
    for (const token of ['2', '3', '4'])
      expect((await modernCall(url, 'echo', {}, as(token))).status).toBe(200);
    expect(await pid(url, as('1'))).not.toBe(first);
  });

  test('an answer that is not JSON-RPC fails its own call, and no other', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const url = `${gate.url}/mcp`;
    const line = (id: number): string =>
      Buffer.from(`{"jsonrpc":"1.0","id":${id},"result":{}}\n`).toString('base64');
    const other = modernCall(url, 'later', { ms: 500, message: 'unharmed' });
    const { result } = await modernCall(url, 'received');
    const last = JSON.parse(JSON.parse(result.content[0].text).at(-1)).id;
    const { error } = await modernCall(url, 'emit', { pieces: [line(last + 1)], silent: true });
    expect(error.message).toMatch(/the server's answer cannot be used: expected "jsonrpc": "2.0"/);
    expect((await other).result.content[0].text).toBe('unharmed');
  });

  test('a child that exits is replaced, and the next call works', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const url = `${gate.url}/mcp`;
    const { error } = await modernCall(url, 'die');
    expect(error.message).toMatch(/target "a".*exited with code 3/);
    await until(async () => (await modernCall(url, 'echo')).error === undefined);
  });

  test('sessions of callers end with the configuration that opened them', async () => {
    await using up = await mcpUpstream();
    const targets = [{ name: 'up', mcp: { host: up.url } }];
    await using folder = await temporaryFolder();
    await using gate = await gateway(mcpConfig(targets), { live: 'asked', folder: folder.path });
    expect((await modernCall(`${gate.url}/mcp`, 'say')).status).toBe(200);
    expect(up.sessions.size).toBe(1);
    const changed = mcpConfig(targets, { backend: { failureMode: 'failClosed' } });
    await writeFile(join(folder.path, 'test.yaml'), changed);
    await gate.live.reload();
    await until(() => up.sessions.size === 0);
  });

  test('a session that the server has forgotten is opened again, and the call runs once', async () => {
    await using up = await mcpUpstream();
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
    const url = `${gate.url}/mcp`;
    await modernCall(url, 'say');
    up.sessions.clear();
    expect((await modernCall(url, 'say', { message: 'again' })).result.content[0].text).toBe('up says again');
  });
});

describe('finding out which revisions a target has', () => {
  test('an HTTP target with sessions is asked for the newer revision once, and not for each caller', async () => {
    await using up = await mcpUpstream();
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
    for (const token of ['a', 'b', 'c']) await modernCall(`${gate.url}/mcp`, 'say', {}, as(token));
    expect(up.of('server/discover')).toHaveLength(1);
    expect(up.of('initialize')).toHaveLength(3);
    expect((up.of('initialize')[0] as Json).headers['mcp-protocol-version']).toBeUndefined();
  });

  test.each([401, 403, 503])(
    'status %i says nothing about the revisions: it is passed to the client',
    async (code) => {
      await using up = await modernUpstream('up', (_received, response) => {
        response.writeHead(code).end('no');
        return true;
      });
      await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
      expect((await modernCall(`${gate.url}/mcp`, 'say')).status).toBe(code);
      expect(up.of('initialize')).toEqual([]);
    },
  );

  test('a server that closes the response stream of server/discover late does not fail the request that follows', async () => {
    let discovered: ServerResponse | undefined;
    await using up = await modernUpstream('up', ({ message }, response) => {
      if (discovered === undefined && message.method === 'server/discover') {
        discovered = response.writeHead(200, { 'content-type': 'text/event-stream' });
        const result = { supportedVersions: [MODERN], capabilities: { tools: {} }, resultType: 'complete' };
        event(response, { id: message.id, result });
      } else discovered?.end().once('close', () => reply(response, message, { content: [] }));
      return true;
    });
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
    const { error, result } = await modernCall(`${gate.url}/mcp`, 'say');
    expect([error, result]).toEqual([undefined, { content: [] }]);
  });

  test('a stdio target that ignores requests before initialize is initialized after a timeout', async () => {
    const script = `
      const lines = require('node:readline').createInterface({ input: process.stdin });
      lines.on('line', (line) => {
        const { id, method } = JSON.parse(line);
        const result = method === 'initialize'
          ? { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } }
          : { content: [{ type: 'text', text: method }] };
        if (id !== undefined && method !== 'server/discover')
          process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
      });`;
    const stdio = { cmd: process.execPath, args: ['-e', script] };
    await using gate = await gateway(mcpConfig([{ name: 's', stdio }]), { limits: { discoverTimeout: 50 } });
    const { result } = await modernCall(`${gate.url}/mcp`, 'any');
    expect(result.content[0].text).toBe('tools/call');
  });

  test('a stdio target that exits at an unknown request before initialize is started again', async () => {
    const script = `
      const lines = require('node:readline').createInterface({ input: process.stdin });
      lines.on('line', (line) => {
        const { id, method } = JSON.parse(line);
        if (method === 'server/discover') process.exit(1);
        const result = method === 'initialize'
          ? { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } }
          : { content: [{ type: 'text', text: 'ran' }] };
        if (id !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
      });`;
    const stdio = { cmd: process.execPath, args: ['-e', script] };
    await using gate = await gateway(mcpConfig([{ name: 's', stdio }]));
    expect((await modernCall(`${gate.url}/mcp`, 'any')).result.content[0].text).toBe('ran');
  });

  test('a stdio target of 2026-07-28 only that refuses initialize before it answers server/discover works', async () => {
    const script = `
      const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
      const supported = ['2026-07-28'];
      let discovery;
      require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
        const { id, method } = JSON.parse(line);
        if (method === 'server/discover') discovery = id;
        else if (method === 'initialize') {
          send({ id, error: { code: -32022, message: 'too old', data: { supported } } });
          send({ id: discovery, result: { supportedVersions: supported, capabilities: { tools: {} } } });
        } else if (id !== undefined) send({ id, result: { content: [{ type: 'text', text: 'ran' }] } });
      });`;
    const stdio = { cmd: process.execPath, args: ['-e', script] };
    await using gate = await gateway(mcpConfig([{ name: 's', stdio }]), { limits: { discoverTimeout: 50 } });
    expect((await modernCall(`${gate.url}/mcp`, 'any')).result.content[0].text).toBe('ran');
  });

  test('a target that is neither is an error with the answer to initialize', async () => {
    await using gate = await gateway(mcpConfig([chaos('a', '--refuse')]));
    const { status, error } = await modern(`${gate.url}/mcp`, 'tools/list');
    expect(status).toBe(500);
    expect(error.message).toMatch(/target "a": not today/);
  });
});

test('the head of an event stream asks proxies not to buffer it', async () => {
  await using up = await modernUpstream('up');
  await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
  const stream = await modernEvents(`${gate.url}/mcp`, 'subscriptions/listen', {
    notifications: { toolsListChanged: true },
  });
  expect(stream.headers.get('x-accel-buffering')).toBe('no');
  expect(stream.headers.get('content-type')).toBe('text/event-stream');
  await stream.next(() => true);
  stream.close();
});
