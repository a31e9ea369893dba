import { describe, expect, test } from 'vitest';
import { ERAS } from '../../../../kit/both-eras.ts';
import { chaos, mcpConfig } from '../../../../kit/config.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { INITIALIZE, type Json, openSession, post } from '../../../../kit/mcp.ts';
import { type McpUpstream, mcpUpstream, type Script } from '../../../../kit/mcp-upstream.ts';
import { until } from '../../../../kit/until.ts';

const target = (up: McpUpstream, name = 'up') => ({ name, mcp: { host: up.url } });
const say = (id: unknown, message: string, name = 'say') => ({
  id,
  method: 'tools/call',
  params: { name, arguments: { message } },
});

describe('an HTTP error of a single target', () => {
  const CHALLENGE = 'Bearer resource_metadata="https://up.example/.well-known/oauth-protected-resource"';
  const refuse =
    (method: string, status = 401): Script =>
    ({ message }, response) => {
      if (message?.method !== method) return false;
      response.writeHead(status, {
        'www-authenticate': CHALLENGE,
        'content-type': 'application/json',
        'retry-after': '7',
        'set-cookie': 'a=b',
        'x-internal': 'yes',
      });
      response.end('{"error":"unauthorized"}');
      return true;
    };

  test.each(['initialize', 'tools/call'])(
    'a 401 of a single target on %s reaches the client with its WWW-Authenticate challenge',
    async (method) => {
      await using up = await mcpUpstream({ script: refuse(method) });
      await using gate = await gateway(mcpConfig([target(up)]));
      const url = `${gate.url}/mcp`;
      const answer =
        method === 'initialize'
          ? await post(url, INITIALIZE)
          : await (await openSession(url)).send(say(1, 'x'));
      expect(answer.status).toBe(401);
      expect(answer.headers.get('www-authenticate')).toBe(CHALLENGE);
      expect(answer.headers.get('content-type')).toBe('application/json');
      expect(answer.headers.get('retry-after')).toBe('7');
      expect(answer.headers.get('set-cookie')).toBeNull();
      expect(answer.headers.get('x-internal')).toBeNull();
      expect(answer.text).toBe('{"error":"unauthorized"}');
    },
  );

  // Clients of MCP ask for more scopes ("Scope Challenge Handling", 2025-11-25), which an error of JSON-RPC cannot say. The metadata
  // of one server would send them to where tokens for the gateway do not come from.
  test.each(ERAS)(
    'the scopes that one of several targets requires reach clients of %s',
    async (_, connect) => {
      const challenge =
        'Bearer realm="x", error="insufficient_scope", scope="a:read b", resource_metadata="https://up.example/m"';
      let sent = challenge;
      const script: Script = ({ message }, response) => {
        if (message?.method !== 'tools/call') return false;
        response.writeHead(403, { 'www-authenticate': sent }).end('more');
        return true;
      };
      await using up = await mcpUpstream({ script });
      await using gate = await gateway(mcpConfig([target(up), chaos('other')]));
      const caller = await connect(`${gate.url}/mcp`);
      let refused: Awaited<ReturnType<typeof caller.call>> | undefined;
      // modelcontextprotocol/python-sdk#3012: parameters in a sentence, and of another scheme.
      for (sent of [
        challenge,
        `Bearer error_description="ask for scope=all, or \\"x\\", scope=y", ${challenge.slice(7)}`,
        `DPoP error="use_dpop_nonce", scope="c", ${challenge}`,
        `${challenge}, Basic realm="x", scope="c"`,
        'Bearer scope = "a:read b" , Error=insufficient_scope',
      ]) {
        refused = await caller.call('up_say');
        expect(refused.status).toBe(403);
        expect(refused.headers.get('www-authenticate')).toBe(
          'Bearer error="insufficient_scope", scope="a:read b"',
        );
      }
      expect(refused?.error.message).toBe('target "up" is not available: the server answered HTTP 403');
      for (sent of [
        'Bearer error="invalid_token"',
        'Bearer error="insufficient_scope"',
        `${challenge.replace('b"', '\\"')}`,
      ])
        expect((await caller.call('up_say')).status).toBe(200);
    },
  );

  test.each([403, 429, 500, 503])('the status %i of a single target reaches the client', async (status) => {
    await using up = await mcpUpstream({ script: refuse('tools/call', status) });
    await using gate = await gateway(mcpConfig([target(up)]));
    const session = await openSession(`${gate.url}/mcp`);
    expect((await session.send(say(1, 'x'))).status).toBe(status);
    // The session still works.
    expect((await session.request('tools/list')).result.tools).toHaveLength(1);
  });

  test.each([
    [
      'application/json',
      { jsonrpc: '2.0', id: '@id', error: { code: -32000, message: 'no' } },
      '{"jsonrpc":"2.0","id":77,"error":{"code":-32000,"message":"no"}}',
    ],
    ['application/json', { jsonrpc: '2.0', id: '@id', result: {} }, 'the server answered HTTP 403'],
    ['application/json', 5, 'the server answered HTTP 403'],
    ['text/event-stream', { jsonrpc: '2.0', id: '@id', error: {} }, 'the server answered HTTP 403'],
    ['text/html', '<p>no</p>', '"<p>no</p>"'],
  ])(
    'the body of an HTTP error is for the client, which has another id: %s %j',
    async (type, body, expected) => {
      await using up = await mcpUpstream({
        script: ({ message }, response) => {
          if (message?.method !== 'tools/call') return false;
          response.writeHead(403, { 'content-type': type });
          response.end(JSON.stringify(body).replace('"@id"', message.id));
          return true;
        },
      });
      await using gate = await gateway(mcpConfig([target(up)]));
      const session = await openSession(`${gate.url}/mcp`);
      const answer = await session.send(say(77, 'x'));
      expect([answer.status, answer.text]).toEqual([403, expected]);
      expect(await gate.accessLine(3)).toMatchObject({
        'http.status': '403',
        error: 'the server answered HTTP 403',
      });
    },
  );

  test('an HTTP error of one of several targets is an error of only the calls to that target', async () => {
    await using up = await mcpUpstream({ script: refuse('tools/call') });
    await using other = await mcpUpstream({ name: 'other' });
    await using gate = await gateway(mcpConfig([target(up), target(other, 'other')]));
    const session = await openSession(`${gate.url}/mcp`);
    const refused = await session.send(say(1, 'x', 'up_say'));
    expect(refused.status).toBe(200);
    expect(refused?.error.message).toBe('target "up" is not available: the server answered HTTP 401');
    expect((await session.send(say(2, 'x', 'other_say'))).result.content[0].text).toBe('other says x');
  });

  test('an HTTP error that arrives late still ends its call', async () => {
    let release: (() => void) | undefined;
    const script: Script = async (request, response) => {
      if (request.message?.method !== 'tools/call') return false;
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      return refuse('tools/call')(request, response);
    };
    await using up = await mcpUpstream({ script });
    await using gate = await gateway(mcpConfig([target(up)]));
    const session = await openSession(`${gate.url}/mcp`);
    let answer: Json;
    session.send(say(1, 'x')).then(
      (reply) => {
        answer = reply;
      },
      () => undefined,
    );
    await until(() => release !== undefined);
    // The gateway has not sent its response head yet, so it can still use the target's status.
    const held = performance.now();
    await until(() => performance.now() - held > 2_100);
    release?.();
    await until(() => answer !== undefined, 1_000);
  });
});

describe('a server that has only the older HTTP+SSE transport', () => {
  // It answers a POST to its event stream with 405 (MCP, "Backwards Compatibility").
  const script: Script = ({ verb }, response) => {
    if (verb !== 'POST') return false;
    response.writeHead(405, { allow: 'GET' }).end('Method Not Allowed');
    return true;
  };

  test.each([
    ['alone', false],
    ['among several', true],
  ])(
    'an HTTP target %s that has only the HTTP+SSE transport is detected, and the error says what to do',
    async (_, isAmongSeveral) => {
      await using up = await mcpUpstream({ script });
      await using other = await mcpUpstream({ name: 'other' });
      const targets = isAmongSeveral ? [target(up), target(other, 'other')] : [target(up)];
      const backend = { failureMode: 'failClosed' };
      await using gate = await gateway(mcpConfig(targets, { backend }));
      const { status, error } = await post(`${gate.url}/mcp`, INITIALIZE);
      expect(status).toBe(500);
      expect(error.message).toContain('target "up": the server answered HTTP 405 to a POST');
      expect(error.message).toContain('Set `host` to its Streamable HTTP endpoint, often `/mcp`');
      expect(error.message).toContain('write `sse: { host: … }` instead of `mcp`');
      expect(error.message).not.toContain(`${up.port}`);
      expect(gate.log.join('')).toContain(`127.0.0.1:${up.port}: the server answered HTTP 405`);
    },
  );
});
