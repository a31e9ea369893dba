import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../../../src/core/limits.ts';
import { mcpConfig } from '../../../../kit/config.ts';
import { openEvents } from '../../../../kit/event-stream.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { INITIALIZE, type Json, openSession, post, toolCall } from '../../../../kit/mcp.ts';
import { type McpUpstream, mcpUpstream, type Script } from '../../../../kit/mcp-upstream.ts';
import { until } from '../../../../kit/until.ts';

const target = (up: McpUpstream, name = 'up') => ({ name, mcp: { host: up.url } });
const bearer = { policies: { backendAuth: { key: 'secret-of-the-target' } } };

/** Redirects each request for this path. */
const redirecting =
  (path: string, status: number, location: (host: string) => string | undefined): Script =>
  (request, response) => {
    if (request.path !== path) return false;
    const to = location(String(request.headers['host']));
    response.writeHead(status, to === undefined ? {} : { location: to }).end('moved');
    return true;
  };

describe('a redirect of an HTTP target within its origin', () => {
  // python-sdk#732, python-sdk#1168, fastmcp#1867, opensearch-mcp-server-py#271 (behind agentgateway): Starlette adds a slash.
  test.each<[string, number, (host: string) => string]>([
    ['307 with an absolute URL', 307, (host) => `http://${host}/mcp/`],
    ['308 with an absolute URL', 308, (host) => `http://${host}/mcp/`],
    ['307 with a path', 307, () => '/mcp/'],
    ['308 with a relative path', 308, () => 'mcp/'],
    ['307 with a query', 307, () => '/mcp/?v=1'],
  ])('%s is followed by every kind of request, with its body and headers', async (_, status, location) => {
    await using up = await mcpUpstream({ script: redirecting('/mcp', status, location) });
    await using gate = await gateway(mcpConfig([{ ...target(up), ...bearer }]));
    const session = await openSession(`${gate.url}/mcp`);
    const { result } = await session.send(toolCall(1, 'say', { message: 'hello' }));
    expect(result.content[0].text).toBe('up says hello');
    await using own = await openEvents(session.url, { session: session.id });
    await until(() => up.streams.length === 1);
    up.streams[0]?.write('data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n');
    await own.next(({ method }) => method === 'notifications/tools/list_changed');
    await session.end();
    await until(() => up.sessions.size === 0);
    const followed = up.received.filter(({ path }) => path !== '/mcp');
    expect(new Set(followed.map(({ verb }) => verb))).toEqual(new Set(['POST', 'GET', 'DELETE']));
    for (const { headers } of followed) expect(headers['authorization']).toBe('Bearer secret-of-the-target');
    expect(up.of('tools/call')[0]?.text).toBe(up.of('tools/call')[1]?.text);
  });

  test('a redirect is followed for one of several targets', async () => {
    await using up = await mcpUpstream({ script: redirecting('/mcp', 307, () => '/mcp/') });
    await using other = await mcpUpstream({ name: 'other' });
    await using gate = await gateway(mcpConfig([target(up), target(other, 'other')]));
    const { result } = await (await openSession(`${gate.url}/mcp`)).request('tools/list');
    expect(result.tools.map(({ name }: Json) => name)).toEqual(['up_say', 'other_say']);
  });

  test('a redirect of a target with the HTTP+SSE transport is followed for its stream and its messages', async () => {
    let stream: ServerResponse | undefined;
    await using up = await mcpUpstream({
      script: ({ path, verb, message }, response) => {
        if (path.startsWith('/old')) response.writeHead(307, { location: path.slice('/old'.length) }).end();
        else if (verb === 'GET') {
          stream = response.writeHead(200, { 'content-type': 'text/event-stream' });
          stream.write('event: endpoint\ndata: /old/messages?s=1\n\n');
        } else {
          response.writeHead(202).end();
          const result = message.method === 'initialize' ? INITIALIZED : { content: [] };
          if (message.id !== undefined)
            stream?.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: message.id, result })}\n\n`);
        }
        return true;
      },
    });
    await using gate = await gateway(
      mcpConfig([{ name: 'old', sse: { host: up.url.replace('/mcp', '/old/sse') } }]),
    );
    const session = await openSession(`${gate.url}/mcp`);
    expect((await session.send(toolCall(1, 'say'))).result).toEqual({ content: [] });
    expect(up.received.map(({ verb, path }) => `${verb} ${path}`)).toContain('POST /messages?s=1');
  });
});

const INITIALIZED = {
  protocolVersion: '2025-06-18',
  capabilities: {},
  serverInfo: { name: 'old', version: '1' },
};

describe('a redirect of an HTTP target that is not followed', () => {
  const REFUSED: [
    string,
    number,
    (host: string, elsewhere: string) => string | undefined,
    (host: string, elsewhere: string) => string,
  ][] = [
    ['301', 301, () => '/mcp/', (host) => `redirects to http://${host}/mcp/ with HTTP 301`],
    ['302', 302, () => '/login?secret=x', (host) => `redirects to http://${host}/login with HTTP 302`],
    ['303', 303, () => '/mcp/', (host) => `redirects to http://${host}/mcp/ with HTTP 303`],
    [
      '307 to another origin',
      307,
      (_, elsewhere) => `${elsewhere}/mcp`,
      (_, elsewhere) => `redirects to another origin, ${elsewhere}/mcp (HTTP 307)`,
    ],
    [
      '308 to another scheme',
      308,
      (host) => `https://${host}/mcp/`,
      (host) => `redirects to another origin, https://${host}/mcp/ (HTTP 308)`,
    ],
    [
      '307 to a URL without a scheme',
      307,
      (_, elsewhere) => elsewhere.slice('http:'.length),
      (_, elsewhere) => `redirects to another origin, ${elsewhere}/ (HTTP 307)`,
    ],
    [
      '307 to a URL with credentials',
      307,
      (_, elsewhere) => elsewhere.replace('//', '//me:pass@'),
      (_, elsewhere) => `redirects to another origin, ${elsewhere}/ (HTTP 307)`,
    ],
    [
      '307 to itself',
      307,
      () => '/mcp',
      (host) => `redirects more than ${LIMITS.targetRedirects} times, at last to http://${host}/mcp`,
    ],
    ['307 without a URL', 307, () => undefined, () => 'redirects without a URL in `Location` (HTTP 307)'],
    [
      '307 to what is no URL',
      307,
      () => 'http://[',
      () => 'redirects without a URL in `Location` (HTTP 307)',
    ],
    ['307 to a script', 307, () => 'javascript:alert(1)', () => 'redirects without a URL in `Location`'],
  ];

  test.each(REFUSED)(
    '%s ends with an error that says what to configure, and nothing is sent there',
    async (_, status, location, text) => {
      await using elsewhere = await mcpUpstream({ name: 'elsewhere' });
      const there = new URL(elsewhere.url).origin;
      await using up = await mcpUpstream({
        script: redirecting('/mcp', status, (host) => location(host, there)),
      });
      const host = new URL(up.url).host;
      await using gate = await gateway(mcpConfig([{ ...target(up), ...bearer }]));
      const { error } = await post(`${gate.url}/mcp`, INITIALIZE);
      expect(error.message).toContain(text(host, there));
      expect(error.message).toContain('set `host` to');
      expect(error.message).not.toMatch(/secret|pass/);
      expect(gate.log.join('')).toContain(text(host, there));
      expect(elsewhere.received).toEqual([]);
    },
  );

  test('a call that is redirected elsewhere fails, and a call of another tool still works', async () => {
    const script: Script = ({ message }, response) => {
      if (message?.params?.name !== 'moved') return false;
      response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end();
      return true;
    };
    await using up = await mcpUpstream({ script });
    await using gate = await gateway(mcpConfig([target(up)]));
    const session = await openSession(`${gate.url}/mcp`);
    const { status, error } = await session.send(toolCall(1, 'moved'));
    expect(status).toBe(200);
    expect(error.message).toContain('target "up" is not available: the server redirects to another origin');
    expect((await session.send(toolCall(2, 'say'))).result.content[0].text).toBe('up says say');
  });

  test('a GET stream that is redirected elsewhere is requested once', async () => {
    const script: Script = ({ verb }, response) => {
      if (verb !== 'GET') return false;
      response.writeHead(302, { location: '/login' }).end();
      return true;
    };
    await using up = await mcpUpstream({ script });
    await using gate = await gateway(mcpConfig([target(up)]), {
      limits: { retryDelayMin: 1, retryDelayMax: 2 },
    });
    const session = await openSession(`${gate.url}/mcp`);
    await using _own = await openEvents(session.url, { session: session.id });
    for (let turn = 0; turn < 20; turn += 1) await session.request('tools/list');
    expect(up.received.filter(({ verb }) => verb === 'GET')).toHaveLength(1);
  });
});
