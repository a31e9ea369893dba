import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ERAS } from '../../../kit/both-eras.ts';
import { chaos, mcpConfig } from '../../../kit/config.ts';
import { gateway, type TestGateway } from '../../../kit/gateway.ts';
import { type Json, openSession } from '../../../kit/mcp.ts';
import { type McpUpstream, mcpUpstream } from '../../../kit/mcp-upstream.ts';

// Patterns read every member of parameters and results, also those that MCP does not have; what they do not read is in
// docs/mcp-tools.md.

const SENTENCE = 'the SECRET77 word';
const regex = (action: string, phase: string): object => ({
  kind: 'regex',
  action,
  rules: [{ pattern: 'SECRET77' }],
  methods: { 'tools/call': phase },
});

describe('patterns of mcpGuardrails', () => {
  const gates: TestGateway[] = [];
  let request: TestGateway;
  let response: TestGateway;
  let masking: TestGateway;
  beforeAll(async () => {
    const guarded = async (action: string, phase: string): Promise<TestGateway> => {
      const policies = { mcpGuardrails: { processors: [regex(action, phase)] } };
      const gate = await gateway(mcpConfig([chaos('a', '--tools=echo,give')], { route: { policies } }));
      gates.push(gate);
      return gate;
    };
    request = await guarded('reject', 'request');
    response = await guarded('reject', 'response');
    masking = await guarded('mask', 'response');
  });
  afterAll(async () => {
    await Promise.all(gates.map((gate) => gate.close()));
  });

  async function called(gate: TestGateway, params: object): Promise<Json> {
    const session = await openSession(`${gate.url}/mcp`);
    return await session.request('tools/call', params);
  }
  const given = (gate: TestGateway, value: object): Promise<Json> =>
    called(gate, { name: 'give', arguments: { result: value } });
  const result = (more: object, content: object = { type: 'text', text: 'a' }): object => ({
    content: [content],
    ...more,
  });

  test.each<[string, object]>([
    ['an unknown member', { unknown: { inner: [SENTENCE] } }],
    ['a key of an unknown member', { unknown: { SECRET77: 1 } }],
    ['an unknown member with that name', { [SENTENCE]: 1 }],
    ['a task', { task: { ttl: 1_000, note: SENTENCE } }],
    ['metadata', { _meta: { progressToken: 1, 'example.com/note': SENTENCE } }],
    ['an argument', { arguments: { a: SENTENCE } }],
  ])('reject a request with the text in %s', async (_, more) => {
    const { error } = await called(request, { name: 'echo', arguments: {}, ...more });
    expect(error).toMatchObject({ code: -32001, message: expect.stringContaining('rules[0]') });
  });

  test.each<[string, object]>([
    ['an unknown member', result({ unknown: [{ inner: SENTENCE }] })],
    ['a key that is a sentence', result({ unknown: { [SENTENCE]: 1 } })],
    ['metadata', result({ _meta: { note: SENTENCE } })],
    ['metadata of a content block', result({}, { type: 'text', text: 'a', _meta: { note: SENTENCE } })],
    ['a type', result({}, { type: SENTENCE, text: 'a' })],
    ['data that is no base64', result({}, { type: 'image', data: SENTENCE, mimeType: 'image/png' })],
    ['data that is an object', result({}, { type: 'text', text: 'a', data: { inner: SENTENCE } })],
    ['a MIME type', result({}, { type: 'image', data: 'AAAA', mimeType: SENTENCE })],
    [
      'a file of text',
      result(
        {},
        {
          type: 'resource',
          resource: {
            uri: 'file:///a',
            mimeType: 'text/plain',
            blob: Buffer.from(SENTENCE).toString('base64'),
          },
        },
      ),
    ],
    [
      'blocks that follow each other',
      { content: ['SECR', 'ET', '77'].map((text) => ({ type: 'text', text })) },
    ],
  ])('reject a result with the text in %s', async (_, value) => {
    const { error } = await given(response, value);
    expect(error).toMatchObject({
      code: -32001,
      message: expect.stringContaining('the response was rejected'),
    });
  });

  test('mask a file of text in its encoding, blocks that follow each other, and an unknown member', async () => {
    const blob = (text: string): string => Buffer.from(text).toString('base64');
    const value = (said: string[], note: string): object => ({
      content: [
        { type: 'resource', resource: { uri: 'file:///a', mimeType: 'text/csv', blob: blob(note) } },
        ...said.map((text) => ({ type: 'text', text })),
      ],
      unknown: { note },
    });
    const { result: masked } = await given(masking, value(['SE', 'CR', 'ET77'], SENTENCE));
    expect(masked).toEqual(value(['<masked>', '', ''], 'the <masked> word'));
  });
});

// A number, a key, or a member without text becomes text where clients could not read the result otherwise.
describe('patterns read a result in the form that clients get', () => {
  let sent = '';
  let up: McpUpstream;
  let gate: TestGateway;
  beforeAll(async () => {
    up = await mcpUpstream({
      capabilities: { tools: {}, prompts: {}, resources: {}, tasks: {} },
      script({ message }, response) {
        if (message?.method === 'initialize' || message?.id === undefined) return false;
        response.setHeader('content-type', 'application/json');
        response.end(`{"jsonrpc":"2.0","id":${message.id},"result":${sent}}`);
        return true;
      },
    });
    const rules = [{ builtin: 'email' }, { builtin: 'creditCard' }];
    const methods = { '*': 'response' };
    const policies = { mcpGuardrails: { processors: [{ kind: 'regex', action: 'mask', rules, methods }] } };
    const target = { name: 'a', mcp: { host: up.url } };
    const route = (path: string, targets: object[]): object => ({
      matches: [{ path: { exact: path } }],
      policies,
      backends: [{ mcp: { targets } }],
    });
    const routes = [route('/one', [target]), route('/two', [target, chaos('b')])];
    gate = await gateway(
      JSON.stringify({ config: { adminAddr: 'off' }, gateways: { default: { port: 0, routes } } }),
    );
  });
  afterAll(async () => {
    await gate.close();
    await up[Symbol.asyncDispose]();
  });

  const CONTENT = [
    '4111111111111111',
    '[4111111111111111]',
    '[{"card":4111111111111111}]',
    '[{"type":"text","text":{"card":4111111111111111}}]',
    '[{"text":4111111111111111}]',
    '[{"requestState":"alice@example.com"}]',
    '[{"role":"alice@example.com"}]',
    '[{"alice@example.com":"x"}]',
  ];
  const TOOL = { name: 'say', arguments: {} };
  const CASES: [path: string, method: string, params: Json, result: string][] = [
    ...CONTENT.flatMap((content): typeof CASES => [
      ['/one', 'tools/call', TOOL, `{"content":${content}}`],
      ['/two', 'tools/call', { ...TOOL, name: 'a_say' }, `{"content":${content}}`],
    ]),
    ['/one', 'tasks/result', { taskId: 't' }, `{"content":${CONTENT[1]}}`],
    ['/one', 'prompts/get', { name: 'p' }, '{"messages":[{"role":"user","content":4111111111111111}]}'],
    ['/one', 'resources/read', { uri: 'x:1' }, '{"contents":[{"uri":"x:1","text":[4111111111111111]}]}'],
  ];
  describe.each(ERAS)('of revision %s', (revision, connect) => {
    // Tasks are those of revision 2025-11-25.
    const cases = CASES.filter(([, method]) => revision === '2025-11-25' || method !== 'tasks/result');
    test.each(cases)('at %s of %s (%j): %s', async (path, method, params, result) => {
      sent = result;
      const { text } = await (await connect(gate.url + path)).ask(method, params);
      expect(text).not.toMatch(/4111|alice/);
      expect(text).toMatch(/<CREDIT_CARD>|<EMAIL_ADDRESS>|could not be checked|rejected/);
    });
  });
});
