import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { INITIALIZE, MCP_HEADERS, type McpSession, openSession, post, read } from '../../kit/mcp.ts';
import { TRANSPORTS } from '../../kit/scripted-server.ts';
import { send } from '../../kit/send.ts';

const WITH_SESSIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];
const SUPPORTED = ['2026-07-28', ...WITH_SESSIONS.toReversed()];

let gate: TestGateway;
let session: McpSession;
beforeAll(async () => {
  gate = await gateway(mcpConfig([chaos('a')]));
  session = await openSession(`${gate.url}/mcp`);
});
afterAll(() => gate.close());

const ping = { jsonrpc: '2.0', id: 'p', method: 'ping' };
const asking = (version: string, extra: Record<string, string> = { 'mcp-session-id': session.id }) =>
  post(session.url, ping, { ...extra, 'mcp-protocol-version': version });

describe('the MCP-Protocol-Version header', () => {
  // Claude Code and others: lowdefy/lowdefy#2345, modelcontextprotocol/python-sdk#1861, BerriAI/litellm#14069.
  const lists = ['2025-11-25, 2025-11-25', '2025-11-25,2025-06-18', '2025-11-25, 2026-07-28'];
  test.each([...WITH_SESSIONS, ...lists])('MCP-Protocol-Version %s passes', async (version) => {
    expect((await asking(version)).status).toBe(200);
  });

  test('MCP-Protocol-Version may come twice with one value, and not with two', async () => {
    const asked = async (...versions: string[]) => {
      const headers = { ...MCP_HEADERS, 'mcp-session-id': session.id, 'mcp-protocol-version': versions };
      return (await send(session.url, { method: 'POST', headers, body: JSON.stringify(ping) })).status;
    };
    expect(await asked('2025-11-25', '2025-11-25')).toBe(200);
    expect(await asked('2025-11-25', '2025-06-18')).toBe(400);
  });

  test('rules on MCP-Protocol-Version see the revision that the gateway reads in several lines or a list', async () => {
    const rules = [{ deny: 'request.headers["mcp-protocol-version"] == "2025-06-18"' }];
    await using ruled = await gateway(
      mcpConfig([chaos('a')], { route: { policies: { authorization: { rules } } } }),
    );
    const asked = async (...versions: string[]) => {
      const headers = { ...MCP_HEADERS, 'mcp-protocol-version': versions };
      const body = JSON.stringify(INITIALIZE);
      return (await send(`${ruled.url}/mcp`, { method: 'POST', headers, body })).status;
    };
    for (const versions of [
      ['2025-06-18, 2025-06-18'],
      ['2025-06-18', '2025-06-18 ,2025-06-18'],
      ['2025-06-18, 2025-11-25'],
      ['2025-06-18,2026-07-28', '2025-06-18'],
    ])
      expect(await asked(...versions), versions.join()).toBe(403);
    // Not a list of revisions: the gateway reads none in it either.
    expect(await asked('2025-06-18,x')).toBe(400);
    expect(await asked('2025-11-25,2025-06-18', '2025-11-25')).toBe(200);
  });

  test('MCP-Protocol-Version may be absent', async () => {
    expect((await post(session.url, ping, { 'mcp-session-id': session.id })).status).toBe(200);
  });

  test.each(['2099-01-01', '1', 'garbage', '2025-06-18 ', '2025-06-18,x', '2025-06-18,', 'DRAFT-2026-v1'])(
    'an unknown MCP-Protocol-Version %j is 400 with the supported revisions',
    async (version) => {
      const { status, headers, messages } = await asking(version);
      // A space at the end is not part of a field value (RFC 9110 §5.5).
      if (version.trim() !== version) return expect(status).toBe(200);
      expect(status).toBe(400);
      expect(headers.get('content-type')).toBe('application/json');
      expect(messages).toEqual([
        {
          jsonrpc: '2.0',
          id: 'p',
          error: {
            code: -32022,
            message: `unsupported MCP protocol version: ${version}`,
            data: { supported: SUPPORTED, requested: version },
          },
        },
      ]);
    },
  );

  test.each([
    ['2025-06-18', '2026-07-28'],
    ['2025-06-18', '2025-11-25'],
    ['2026-07-28', '2025-06-18'],
    ['2025-06-18', 7],
  ])('MCP-Protocol-Version %j that differs from %j in _meta is rejected', async (inHeader, inBody) => {
    const meta = { 'io.modelcontextprotocol/protocolVersion': inBody };
    const message = { jsonrpc: '2.0', id: 'p', method: 'ping', params: { _meta: meta } };
    const headers = { 'mcp-session-id': session.id, 'mcp-protocol-version': inHeader };
    const { status, messages } = await post(session.url, message, headers);
    expect(status).toBe(400);
    expect(messages).toEqual([
      {
        jsonrpc: '2.0',
        id: 'p',
        error: {
          code: -32020,
          message: `the header mcp-protocol-version is "${inHeader}", but params._meta["io.modelcontextprotocol/protocolVersion"] in the body is "${inBody}"`,
        },
      },
    ]);
  });

  test.each([
    ['2025-06-18', '2025-06-18', undefined],
    [undefined, '2025-06-18', undefined],
    [undefined, '2026-07-28', -32602],
    [undefined, '2099-01-01', -32022],
  ])('MCP-Protocol-Version %j with %j in _meta gives the error %j', async (inHeader, inBody, code) => {
    const meta = { 'io.modelcontextprotocol/protocolVersion': inBody };
    const message = { jsonrpc: '2.0', id: 'p', method: 'ping', params: { _meta: meta } };
    const headers = {
      'mcp-session-id': session.id,
      ...(inHeader === undefined ? {} : { 'mcp-protocol-version': inHeader }),
    };
    expect((await post(session.url, message, headers)).error?.code).toBe(code);
  });

  test('MCP-Protocol-Version is checked before the session, because later revisions have no sessions', async () => {
    const discover = { jsonrpc: '2.0', id: 1, method: 'server/discover', params: {} };
    const { status, error } = await post(session.url, discover, { 'mcp-protocol-version': '2026-07-28' });
    expect(status).toBe(400);
    expect(error.code).toBe(-32602);
  });

  test('GET with MCP-Protocol-Version 2026-07-28 is 405, because that revision only has POST', async () => {
    const headers = { ...MCP_HEADERS, 'mcp-session-id': session.id, 'mcp-protocol-version': '2026-07-28' };
    const response = await fetch(session.url, { headers });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
  });

  test('MCP-Protocol-Version is checked for GET, which has no id to answer to', async () => {
    const headers = { ...MCP_HEADERS, 'mcp-session-id': session.id, 'mcp-protocol-version': '2099-01-01' };
    const { status, messages } = await read(await fetch(session.url, { headers }));
    expect(status).toBe(400);
    expect(messages[0]).toMatchObject({ id: null, error: { code: -32022 } });
  });

  test('a long MCP-Protocol-Version is truncated in the error', async () => {
    const { error } = await asking('9'.repeat(5_000));
    expect(error.data.requested).toBe('9'.repeat(64));
    expect(error.message.length).toBeLessThan(120);
  });

  test('a client that initializes with an unknown revision is offered an older one and continues with it', async () => {
    const initialize = {
      jsonrpc: '2.0',
      id: 0,
      method: 'initialize',
      params: { protocolVersion: '2099-01-01', capabilities: {}, clientInfo: { name: 'new', version: '1' } },
    };
    await using two = await gateway(
      mcpConfig([chaos('a', '--revision=2025-06-18'), chaos('b', '--revision=2025-11-25')]),
    );
    const { result, status } = await post(`${two.url}/mcp`, initialize);
    expect(status).toBe(200);
    expect(result.protocolVersion).toBe('2025-06-18');
  });
});

describe.each(['2099-01-01', '\ud800', ''])('a client that proposes revision %j', (version) => {
  test('gets one that both sides know, also from a server that agrees to everything', async () => {
    const result =
      '{"protocolVersion":@version,"capabilities":{"tools":{}},"serverInfo":{"name":"a","version":"1"}}';
    for (const [, start] of TRANSPORTS) {
      await using server = await start({ initialize: `{"jsonrpc":"2.0","id":@id,"result":${result}}` });
      await using own = await gateway(mcpConfig([server.target]));
      const params = { ...INITIALIZE.params, protocolVersion: version };
      const { initialize, request } = await openSession(`${own.url}/mcp`, {}, { ...INITIALIZE, params });
      expect(initialize.result.protocolVersion).toBe('2025-11-25');
      expect((await request('tools/call', { name: 't' })).error).toBeUndefined();
    }
  });
});
