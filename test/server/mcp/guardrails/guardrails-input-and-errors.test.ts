import { describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../../kit/config.ts';
import { openEvents } from '../../../kit/event-stream.ts';
import { extMcpService } from '../../../kit/ext-mcp.ts';
import { gateway } from '../../../kit/gateway.ts';
import { type Json, openSession, toolCall } from '../../../kit/mcp.ts';
import { mcpUpstream } from '../../../kit/mcp-upstream.ts';
import { modernCall } from '../../../kit/modern.ts';
import { httpUpstream } from '../../../kit/upstream.ts';

const rules = [{ builtin: 'email' }, { pattern: 'secret-[0-9]+' }];
const regex = (action: string, phases = 'full') => ({
  kind: 'regex',
  action,
  rules,
  methods: { 'tools/call': phases },
});

const guarded = (processors: object[], targets: object[] = [chaos('a')], more: object = {}) =>
  gateway(mcpConfig(targets, { route: { policies: { mcpGuardrails: { processors } } }, ...more }));

describe('errors of tools', () => {
  const failing = { code: -32000, message: 'login as ann@example.com failed' };

  test('mask changes the message of an error, and its code stays', async () => {
    await using gate = await guarded([regex('mask', 'response')]);
    const session = await openSession(`${gate.url}/mcp`);
    const { error } = await session.request('tools/call', { name: 'fail', arguments: failing });
    expect(error).toEqual({ code: -32000, message: 'login as <EMAIL_ADDRESS> failed' });
    expect(gate.accessLog.join('')).not.toContain('ann@example.com');
  });

  test('mask changes every string in the data of an error', async () => {
    const error = { code: -32000, message: 'no', data: { rows: [{ data: 'secret-1', n: 7 }] } };
    await using up = await mcpUpstream({
      script: ({ message }, response) => {
        if (message?.method !== 'tools/call') return false;
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, error }));
        return true;
      },
    });
    await using gate = await guarded([regex('mask')], [{ name: 'up', mcp: { host: up.url } }]);
    const session = await openSession(`${gate.url}/mcp`);
    const reply = await session.request('tools/call', { name: 'any' });
    expect(reply.error).toEqual({ ...error, data: { rows: [{ data: '<masked>', n: 7 }] } });
  });

  test('reject replaces an error whose message matches', async () => {
    await using gate = await guarded([regex('reject', 'response')]);
    const session = await openSession(`${gate.url}/mcp`);
    const { error } = await session.request('tools/call', { name: 'fail', arguments: failing });
    expect(error).toEqual({
      code: -32001,
      message: 'the response was rejected by mcpGuardrails.processors[0] (regex): it matches email',
    });
  });

  test('a webhook gets the error of a tool and can change it, a remote processor does not see it', async () => {
    const bodies: Json[] = [];
    await using service = await httpUpstream((_request, response, { body }) => {
      bodies.push(JSON.parse(body).body);
      response.end(JSON.stringify({ action: { body: { error: { code: -32000, message: 'hidden' } } } }));
    });
    await using remote = await extMcpService(() => ({ error: { code: 1, reason: 'never' } }));
    const methods = { 'tools/call': 'response' };
    await using gate = await guarded([
      { kind: 'remote', host: remote.address, methods },
      { kind: 'webhook', host: `127.0.0.1:${service.port}`, methods },
    ]);
    const session = await openSession(`${gate.url}/mcp`);
    const reply = await session.request('tools/call', { name: 'fail', arguments: failing });
    expect(reply.error).toEqual({ code: -32000, message: 'hidden' });
    expect(bodies).toEqual([
      { method: 'tools/call', target: 'a', params: { name: 'fail', arguments: failing }, error: failing },
    ]);
    expect(remote.received).toEqual([]);
  });

  test('the body of an HTTP error status does not reach a client whose results are checked', async () => {
    await using up = await mcpUpstream({
      script: ({ message }, response) => {
        if (message?.method !== 'tools/call') return false;
        response.writeHead(403, { 'www-authenticate': 'Bearer scope="more"' }).end('ann@example.com may not');
        return true;
      },
    });
    const targets = [{ name: 'up', mcp: { host: up.url } }];
    await using gate = await guarded([regex('mask')], targets);
    const session = await openSession(`${gate.url}/mcp`);
    const { status, text, headers } = await session.request('tools/call', { name: 'any' });
    expect([status, text]).toEqual([403, 'the server answered HTTP 403']);
    expect(headers.get('www-authenticate')).toBe('Bearer scope="more"');
    await using unchecked = await guarded([regex('mask', 'request')], targets);
    const other = await openSession(`${unchecked.url}/mcp`);
    expect((await other.request('tools/call', { name: 'any' })).text).toBe('ann@example.com may not');
  });
});

describe('input that a server requests from a client during a call', () => {
  const form = { action: 'accept', content: { mail: 'ann@example.com', note: ['secret-1'], 'secret-2': 5 } };
  const masked = {
    action: 'accept',
    content: { mail: '<EMAIL_ADDRESS>', note: ['<masked>'], 'secret-2': 5 },
  };
  const said = { role: 'assistant', model: 'm', content: { type: 'text', text: 'it is secret-1' } };
  const image = {
    role: 'assistant',
    model: 'm',
    content: { type: 'image', data: 'secret-1', mimeType: 'a/b' },
  };
  const inputs: [string, string, object, object][] = [
    ['elicitation', 'elicitation/create', form, masked],
    [
      'sampling',
      'sampling/createMessage',
      said,
      { ...said, content: { type: 'text', text: 'it is <masked>' } },
    ],
    ['sampling with an image', 'sampling/createMessage', image, image],
  ];

  /** Calls a tool that asks, in a session, and answers. Resolves to the call's response and what the tool got. */
  async function answered(url: string, method: string, answer: object): Promise<Json> {
    const session = await openSession(url);
    const message = toolCall(1, 'ask', { method, params: {} });
    await using stream = await openEvents(url, { session: session.id, message, headWithin: 15_000 });
    const request = await stream.next((each) => each.method === method);
    await session.send({ id: request.id, ...answer });
    return await stream.next(({ id }) => id === 1);
  }

  test.each(inputs)('mask changes the answer to %s in a session', async (_what, method, answer, expected) => {
    await using gate = await guarded([regex('mask', 'request')]);
    const { result } = await answered(`${gate.url}/mcp`, method, { result: answer });
    expect(JSON.parse(result.content[0].text)).toEqual(expected);
  });

  test.each(inputs)('mask changes the inputResponses to %s', async (_what, method, answer, expected) => {
    await using gate = await guarded([regex('mask', 'request')]);
    const url = `${gate.url}/mcp`;
    const asking = { capabilities: { sampling: {}, elicitation: {} } };
    const args = { method, params: {} };
    const { result } = await modernCall(url, 'ask', args, asking);
    const [key] = Object.keys(result.inputRequests);
    const more = { requestState: result.requestState, inputResponses: { [key as string]: answer } };
    const reply = await modernCall(url, 'ask', args, asking, more);
    expect(JSON.parse(reply.result.content[0].text)).toEqual(expected);
  });

  test('reject answers the server with an error instead of the answer of the client', async () => {
    await using gate = await guarded([regex('reject', 'request')]);
    const { result } = await answered(`${gate.url}/mcp`, 'elicitation/create', { result: form });
    expect(JSON.parse(result.content[0].text).error).toEqual({
      code: -32001,
      message: 'the request was rejected by mcpGuardrails.processors[0] (regex): it matches email',
    });
  });

  test('a webhook gets the answer of a client as inputResponses of a call, and can change it', async () => {
    const bodies: Json[] = [];
    await using service = await httpUpstream((_request, response, { body }) => {
      const { params, ...others } = JSON.parse(body).body;
      if (params.inputResponses === undefined) return void response.end('{"action":{}}');
      bodies.push({ params, ...others });
      const changed = { inputResponses: { 'elicitation/create': { action: 'decline' } } };
      response.end(JSON.stringify({ action: { body: { params: changed } } }));
    });
    const methods = { 'tools/call': 'request' };
    await using gate = await guarded([{ kind: 'webhook', host: `127.0.0.1:${service.port}`, methods }]);
    const { result } = await answered(`${gate.url}/mcp`, 'elicitation/create', { result: form });
    expect(JSON.parse(result.content[0].text)).toEqual({ action: 'decline' });
    expect(bodies).toEqual([
      { method: 'tools/call', target: 'a', params: { inputResponses: { 'elicitation/create': form } } },
    ]);
  });
});
