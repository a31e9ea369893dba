import { describe, expect, test } from 'vitest';
import { mcpConfig } from '../../../../kit/config.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { INITIALIZE, type Json, openSession, post, toolCall } from '../../../../kit/mcp.ts';
import { mcpUpstream, type Script } from '../../../../kit/mcp-upstream.ts';

const target = (url: string) => ({ name: 'up', mcp: { host: url } });

/** A target that answers all requests in this way; `json` is the response as JSON. */
const answering = (type: string | undefined, body: (json: string) => string) => {
  const script: Script = ({ verb, message }, response) => {
    if (verb !== 'POST' || message.id === undefined) return false;
    const result: Json =
      message.method === 'initialize'
        ? {
            protocolVersion: '2025-06-18',
            capabilities: { tools: {} },
            serverInfo: { name: 'up', version: '1' },
          }
        : { content: [{ type: 'text', text: 'Grüße' }] };
    const json = JSON.stringify({ jsonrpc: '2.0', id: message.id, result });
    if (message.method === 'initialize') up.sessions.add('own');
    const headers = { 'mcp-session-id': 'own', ...(type !== undefined && { 'content-type': type }) };
    response.writeHead(200, headers).end(body(json));
    return true;
  };
  const started = mcpUpstream({ script });
  let up: Awaited<typeof started>;
  return started.then((server) => {
    up = server;
    return server;
  });
};

describe('answers of HTTP targets', () => {
  const event = (json: string): string => `event: message\ndata: ${json}\n\n`;
  const SAID = 'the server ended its answer without a response; it said: {"error":"no quota"}';
  const same = (json: string): string => json;
  const NOTE = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}';
  test.each<[string, string | undefined, (json: string) => string]>([
    ['upper-case JSON with a charset', 'Application/JSON; Charset=UTF-8', same],
    ['JSON with parameters', 'application/json;;;odata=x', same],
    ['application/json-rpc', 'application/json-rpc', same],
    ['a suffix for JSON', 'application/vnd.acme.v1+json', same],
    ['text/json', 'text/json', same],
    ['text/plain with JSON', 'text/plain; charset=utf-8', same],
    ['no type and JSON', undefined, same],
    ['bytes with JSON', 'application/octet-stream', (json) => ` ${json}\n`],
    ['upper-case events', 'Text/Event-Stream', event],
    ['events with parameters', 'text/event-stream ; charset=utf-8', event],
    ['a byte order mark before JSON', 'application/json', (json) => `\uFEFF${json}`],
    ['an array with the response', 'application/json', (json) => `[${json}]`],
    ['an array with spaces', 'application/json', (json) => ` [ ${json} ] `],
    ['an array with a notification', 'application/json', (json) => `[${NOTE},${json}]`],
    ['an event with an array', 'text/event-stream', (json) => event(`[${json}]`)],
    ['an event without an empty line after it', 'text/event-stream', (json) => `data: ${json}\n`],
    ['an event without a line break after it', 'text/event-stream', (json) => `data: ${json}`],
    ['lines that end in CR', 'text/event-stream', (json) => `data: ${json}\r\r`],
    [
      'an unfinished event after the response',
      'text/event-stream',
      (json) => `${event(json)}data: {"jsonrpc`,
    ],
  ])('an answer with %s is read', async (_, type, body) => {
    await using up = await answering(type, body);
    await using gate = await gateway(mcpConfig([target(up.url)]));
    const session = await openSession(`${gate.url}/mcp`);
    const { result } = await session.send(toolCall(1, 'say'));
    expect(result.content[0].text).toBe('Grüße');
  });

  test.each<[string, string | undefined, string, string]>([
    [
      'a sign-in page',
      'text/html; charset=utf-8',
      '<html>\n  <title>Log in</title>',
      'with text/html instead of JSON or an event stream: <html> <title>Log in</title>',
    ],
    [
      'text',
      'text/plain',
      'upstream connect error',
      'with text/plain instead of JSON or an event stream: upstream connect error',
    ],
    [
      'text without a type',
      undefined,
      'hello',
      'without a Content-Type instead of JSON or an event stream: hello',
    ],
    [
      'events as text',
      'text/plain',
      'data: {}\n\n',
      'with text/plain instead of JSON or an event stream: data: {}',
    ],
    ['an image', 'image/png', '\u0089PNG', 'with image/png'],
    // stacklok/toolhive#6085
    ['an error that is not JSON-RPC', 'text/event-stream', event('{"error":"no quota"}'), SAID],
    [
      'an error as an event of its own',
      'text/event-stream',
      'event: error\ndata: {"error":"no quota"}\n\n',
      SAID,
    ],
    ['JSON that is not JSON-RPC', 'application/json', '{"error":"no quota"}', SAID],
    ['a type that is none', '/', 'x', 'instead of JSON'],
  ])('an answer with %s fails with its type and its start', async (_, type, body, text) => {
    await using up = await answering(type, () => body);
    await using gate = await gateway(mcpConfig([target(up.url)]));
    const { status, error } = await post(`${gate.url}/mcp`, INITIALIZE);
    expect(status).toBe(500);
    expect(error.message).toContain(text);
    expect(gate.log.join('').replaceAll('\\"', '"')).toContain(text);
  });

  // docker/mcp-gateway#505
  test.each([200, 202, 204])('an empty answer with status %i to a call fails with it', async (status) => {
    await using up = await mcpUpstream({
      script: ({ message }, response) => {
        if (message?.method !== 'tools/call') return false;
        response.writeHead(status).end();
        return true;
      },
    });
    await using gate = await gateway(mcpConfig([target(up.url)]));
    const { error } = await (await openSession(`${gate.url}/mcp`)).send(toolCall(1, 'say'));
    expect(error.message).toContain(`the server answered HTTP ${status} without a response`);
  });

  test('of an answer that is no JSON, the error shows 200 characters, without secrets', async () => {
    const key = 'key-of-the-target-0123456789';
    await using up = await answering('text/html', () => `bad key ${key} ${'x'.repeat(1_000)}`);
    const policies = { backendAuth: { key } };
    await using gate = await gateway(mcpConfig([{ ...target(up.url), policies }]));
    const { error } = await post(`${gate.url}/mcp`, INITIALIZE);
    expect(error.message).toContain('event stream: bad key ');
    expect(error.message + gate.log.join('')).not.toContain(key);
    expect(/x+/.exec(error.message.slice(-250))?.[0].length).toBeLessThanOrEqual(200);
    await using other = await answering('text/event-stream', () => event(`{"error":"bad key ${key}"}`));
    await using next = await gateway(mcpConfig([{ ...target(other.url), policies }]));
    const said = (await post(`${next.url}/mcp`, INITIALIZE)).error.message;
    expect(said).toContain('it said: {"error":"bad key ');
    expect(said + next.log.join('')).not.toContain(key);
  });

  test('an array with too many messages is not read', async () => {
    await using up = await answering('application/json', (json) => `[${`${json},`.repeat(10_000)}${json}]`);
    await using gate = await gateway(mcpConfig([target(up.url)]));
    const { status } = await post(`${gate.url}/mcp`, INITIALIZE);
    expect(status).toBe(500);
  });
});
