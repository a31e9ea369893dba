import { describe, expect, test } from 'vitest';
import { toStruct } from '../../../../src/server/transport/services/protobuf-struct.ts';
import { chaos, mcpConfig } from '../../../kit/config.ts';
import { openEvents } from '../../../kit/event-stream.ts';
import { type Answer, extMcpService } from '../../../kit/ext-mcp.ts';
import { gateway } from '../../../kit/gateway.ts';
import { type Json, openSession } from '../../../kit/mcp.ts';
import { mcpUpstream } from '../../../kit/mcp-upstream.ts';
import { until } from '../../../kit/until.ts';
import { refusingPort } from '../../../kit/upstream.ts';

const BOTH: readonly object[] = [chaos('a', '--tools=echo,received'), chaos('b')];

async function guarded(host: string, more: object = {}, limits = {}, targets = BOTH) {
  const processors = [{ kind: 'remote', host, ...more }];
  const gate = await gateway(mcpConfig(targets, { route: { policies: { mcpGuardrails: { processors } } } }), {
    limits,
  });
  const session = await openSession(`${gate.url}/mcp`, { 'x-team': 'blue', 'x-secret': 's' });
  return {
    gate,
    session,
    call: async (name: string, args: object = {}): Promise<Json> =>
      session.request('tools/call', { name, arguments: args }),
    [Symbol.asyncDispose]: () => gate.close(),
  };
}

const json = (bytes: Buffer): Json => JSON.parse(bytes.toString('utf8'));
const bytes = (value: object): Buffer => Buffer.from(JSON.stringify(value));
const pass: Answer = () => ({ pass: {} });

describe('mcpGuardrails with a remote processor', () => {
  test('the service gets target, method, parameters, result, metadata and headers', async () => {
    await using service = await extMcpService(pass);
    await using own = await guarded(service.address, {
      metadata: { path: 'request.path', list: '[1, true, null]', missing: 'jwt.sub' },
      requestHeaders: { allowed: ['x-team', ':path', 'x-secret'], disallowed: ['X-Secret'] },
    });
    expect((await own.call('a_echo', { message: 'hi' })).result.content[0].text).toBe('hi');
    const [request, response] = service.received;
    expect(request?.method).toBe('CheckRequest');
    expect(request?.request).toMatchObject({
      service_names: ['a'],
      method: 'tools/call',
      metadata_context: {
        fields: {
          path: { stringValue: '/mcp' },
          list: { listValue: { values: [{ numberValue: 1 }, { boolValue: true }, { kind: 'nullValue' }] } },
        },
      },
      headers: [
        { key: ':path', value: Buffer.from('/mcp') },
        { key: 'x-team', value: Buffer.from('blue') },
      ],
    });
    expect(Object.keys(request?.request.metadata_context.fields)).toEqual(['path', 'list']);
    expect(json(request?.request.mcp_request)).toEqual({ name: 'echo', arguments: { message: 'hi' } });
    expect(response?.method).toBe('CheckResponse');
    expect(response?.request).toMatchObject({ service_names: ['a'], method: 'tools/call' });
    expect(json(response?.request.mcp_response)).toEqual({ content: [{ type: 'text', text: 'hi' }] });
  });

  test('the service can change parameters and results', async () => {
    await using service = await extMcpService((request, method) => ({
      mutated:
        method === 'CheckRequest'
          ? bytes({ name: 'echo', arguments: { message: 'changed' } })
          : bytes({ ...json(request.mcp_response), seen: true }),
    }));
    await using own = await guarded(service.address);
    expect((await own.call('a_echo', { message: 'hi' })).result).toEqual({
      content: [{ type: 'text', text: 'changed' }],
      seen: true,
    });
  });

  test.each([
    [0, -32603],
    [1, -32001],
    [2, -32003],
    [3, -32600],
    [9, -32603],
  ])(
    'an error with code %i becomes the JSON-RPC error %i, with its reason and data',
    async (code, expected) => {
      await using service = await extMcpService(() => ({
        error: { code, reason: 'not you', mcp_error: bytes({ hint: 'ask' }) },
      }));
      await using own = await guarded(service.address);
      expect((await own.call('a_echo')).error).toEqual({
        code: expected,
        message: 'the request was rejected by mcpGuardrails.processors[0] (remote): not you',
        data: { hint: 'ask' },
      });
    },
  );

  test('the service gets a list of several targets with all of their names', async () => {
    await using service = await extMcpService((request) => {
      const { tools } = json(request.mcp_response);
      return { mutated: bytes({ tools: tools.slice(0, 1) }) };
    });
    await using own = await guarded(service.address, { methods: { 'tools/list': 'response' } });
    const { result } = await own.session.request('tools/list');
    expect(result.tools.map(({ name }: Json) => name)).toEqual(['a_echo']);
    expect(service.received.map(({ method, request }) => [method, request.service_names])).toEqual([
      ['CheckResponse', ['a', 'b']],
    ]);
  });

  test('the service can set and remove headers of the request to an HTTP target', async () => {
    const value = (text: string) => Buffer.from(text);
    await using service = await extMcpService(() => ({
      pass: {},
      header_mutation: {
        set: [
          { key: 'x-team', value: value('red') },
          { key: 'X-Team', value: value('green') },
          { key: 'x-new', value: value('1') },
        ],
        remove: ['X-Secret'],
      },
    }));
    await using up = await mcpUpstream({ name: 'up' });
    const targets = [{ name: 'up', mcp: { host: up.url } }];
    await using own = await guarded(service.address, { methods: { 'tools/call': 'request' } }, {}, targets);
    expect((await own.call('any')).error).toBeUndefined();
    const [called] = up.of('tools/call');
    expect(called?.headers).toMatchObject({ 'x-team': 'red, green', 'x-new': '1' });
    expect(called?.headers).not.toHaveProperty('x-secret');
    expect(up.of('initialize')[0]?.headers).toMatchObject({ 'x-team': 'blue', 'x-secret': 's' });
  });

  test('header mutations also apply to the answer of a client to a request of the server', async () => {
    await using service = await extMcpService((request) => ({
      pass: {},
      header_mutation: {
        set: [{ key: 'x-asked', value: Buffer.from(Object.keys(json(request.mcp_request)).join()) }],
      },
    }));
    const question = { jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: {} };
    await using up = await mcpUpstream({
      script: ({ message }, response) => {
        if (message?.method !== 'tools/call') return false;
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        return response.write(`data: ${JSON.stringify(question)}\n\n`) || true;
      },
    });
    const targets = [{ name: 'up', mcp: { host: up.url } }];
    await using own = await guarded(service.address, { methods: { 'tools/call': 'request' } }, {}, targets);
    const { url, id: session } = own.session;
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'any', arguments: {} } };
    await using stream = await openEvents(url, { session, message, headWithin: 15_000 });
    const { id } = await stream.next(({ method }) => method === 'elicitation/create');
    await own.session.send({ id, result: { action: 'decline' } });
    await until(() => up.received.some((each) => each.message?.id === 'q'));
    const answer = up.received.find((each) => each.message?.id === 'q');
    expect(answer?.headers['x-asked']).toBe('inputResponses');
    expect(answer?.message.result).toEqual({ action: 'decline' });
  });

  test.each(['host', 'mcp-session-id', 'Content-Length', 'not a name', 'content-type'])(
    'a service that sets the header %s rejects the request',
    async (key) => {
      await using service = await extMcpService(() => ({
        pass: {},
        header_mutation: { set: [{ key, value: Buffer.from('b') }] },
      }));
      await using own = await guarded(service.address, { methods: { 'tools/call': 'request' } });
      expect((await own.call('a_echo')).error.code).toBe(-32603);
      const line = own.gate.accessLog.find((each) => each.includes('-32603'));
      expect(line).toContain('header_mutation sets');
    },
  );

  test('the log can read metadata of the service as extMcp, merged from all processors', async () => {
    let calls = 0;
    await using service = await extMcpService(() => {
      calls += 1;
      return {
        pass: {},
        metadata: toStruct({ verdict: `v${calls}`, [`n${calls}`]: [calls, { deep: true }] }),
      };
    });
    const processor = { kind: 'remote', host: service.address, methods: { 'tools/call': 'request' } };
    const yaml = JSON.parse(
      mcpConfig([chaos('a')], {
        route: { policies: { mcpGuardrails: { processors: [processor, processor] } } },
      }),
    );
    const add = { verdict: 'extMcp.verdict', first: 'extMcp.n1[0]', deep: 'extMcp.n2[1].deep' };
    await using gate = await gateway(JSON.stringify({ ...yaml, frontendPolicies: { accessLog: { add } } }));
    const session = await openSession(`${gate.url}/mcp`);
    await session.request('tools/call', { name: 'echo' });
    const line = gate.accessLog.find((each) => each.includes('tools/call'));
    expect(line).toMatch(/verdict="?v2"? first=1(?:\.0)? deep=true/);
  });

  test('an error in the response phase replaces the result', async () => {
    await using service = await extMcpService(() => ({ error: { code: 1, reason: 'no' } }));
    await using own = await guarded(service.address, { methods: { 'tools/call': 'response' } });
    expect((await own.call('a_echo')).error).toEqual({
      code: -32001,
      message: 'the response was rejected by mcpGuardrails.processors[0] (remote): no',
    });
  });

  const failures: [string, Answer][] = [
    ['fails', () => new Error('broken')],
    ['never answers', () => undefined],
    ['answers without a result', () => ({})],
    ['answers what is not JSON', () => ({ mutated: Buffer.from('{') })],
    ['names another tool', () => ({ mutated: bytes({ name: 'received' }) })],
    ['answers too much', () => ({ mutated: Buffer.alloc(5_000_000, ' ') })],
  ];

  test.each(failures)(
    'a service that %s rejects the request, or lets it pass with failOpen',
    async (_what, answer) => {
      await using service = await extMcpService(answer);
      const methods = { 'tools/call': 'request' };
      const limits = { guardrailTimeout: 1_000 };
      await using closed = await guarded(service.address, { methods }, limits);
      expect((await closed.call('a_echo')).error).toEqual({
        code: -32603,
        message: 'the request could not be checked by mcpGuardrails.processors[0] (remote)',
      });
      await using open = await guarded(service.address, { methods, failureMode: 'failOpen' }, limits);
      expect((await open.call('a_echo', { message: 'hi' })).result.content[0].text).toBe('hi');
      expect(open.gate.log.join('')).toContain('a remote processor failed; the call continues (failOpen)');
    },
  );

  test('a service that fails about a result replaces it by an error, or lets it pass with failOpen', async () => {
    await using service = await extMcpService(() => new Error('broken'));
    const methods = { 'tools/call': 'response' };
    await using closed = await guarded(service.address, { methods });
    expect((await closed.call('a_echo', { message: 'hi' })).error).toEqual({
      code: -32603,
      message: 'the response could not be checked by mcpGuardrails.processors[0] (remote)',
    });
    await using open = await guarded(service.address, { methods, failureMode: 'failOpen' });
    expect((await open.call('a_echo', { message: 'hi' })).result.content[0].text).toBe('hi');
  });

  test('a service that cannot be reached rejects the request, with the reason in the log', async () => {
    const address = `127.0.0.1:${await refusingPort()}`;
    await using own = await guarded(address);
    expect((await own.call('a_echo')).error.code).toBe(-32603);
    const line = (): string | undefined => own.gate.accessLog.find((each) => each.includes('-32603'));
    await until(() => line() !== undefined);
    expect(line()).toContain(`${address}: gRPC status UNAVAILABLE`);
  });

  test('a client that disconnects cancels the call to the service', async () => {
    await using service = await extMcpService(() => undefined);
    await using own = await guarded(service.address);
    const abort = new AbortController();
    const call = own.session.send(
      { id: 9, method: 'tools/call', params: { name: 'a_echo' } },
      { signal: abort.signal },
    );
    await until(() => service.received.length === 1);
    abort.abort();
    await expect(call).rejects.toThrow();
    await until(() => service.cancelled === 1);
  });
});
