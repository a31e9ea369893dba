import type { ServerResponse } from 'node:http';
import * as sdk from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { withoutNulls } from '../../../src/server/mcp/protocol/absent-members.ts';
import { ERAS } from '../../kit/both-eras.ts';
import { chaos } from '../../kit/config.ts';
import { ERA_CLIENTS, type EraClient } from '../../kit/era-clients.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { type Json, post } from '../../kit/mcp.ts';
import { type McpUpstream, mcpUpstream } from '../../kit/mcp-upstream.ts';

// Results with members in a form that MCP does not allow and official clients refuse, with all that is beside them: the tools of every
// target if one tool has it. Azure/data-api-builder#3599, datalayer/jupyter-mcp-server#184, r33drichards/mcp-js#117 (null),
// anthropics/claude-code#44364, #88049 and #92900, NousResearch/hermes-agent#101669, IvanMurzak/Unity-MCP#440, mastra-ai/mastra#21859,
// zereight/gitlab-mcp#286, sandialabs/atlas-ui-3#727 (input schemas), kenn-io/msgvault#626, Azure/Azure-Resource-Manager-MCP#21
// (output schemas), naw103/foremerge#28 (structured content).

/** Results of the server by method, as JSON texts. */
let results: Record<string, string> = {};
let up: McpUpstream;
let gate: TestGateway;
const clients: EraClient[] = [];

const CAPABILITIES = '{"tools":{},"prompts":{},"resources":{},"completions":{},"experimental":null}';

function script({ message }: { message: Json }, response: ServerResponse): boolean {
  const result = results[message?.method];
  if (result === undefined) return false;
  response.setHeader('content-type', 'application/json');
  response.end(
    `{"jsonrpc":"2.0","id":${message.id},"result":${result.replace('@version', message.params?.protocolVersion)}}`,
  );
  return true;
}

beforeAll(async () => {
  up = await mcpUpstream({ script, capabilities: JSON.parse(CAPABILITIES) });
  const route = (path: string, targets: object[]): object => ({
    matches: [{ path: { exact: path } }],
    backends: [{ mcp: { targets } }],
  });
  const target = { name: 'a', mcp: { host: up.url } };
  gate = await gateway(
    JSON.stringify({
      config: { adminAddr: 'off' },
      gateways: {
        default: { port: 0, routes: [route('/one', [target]), route('/two', [target, chaos('b')])] },
      },
    }),
  );
  for (const path of ['/one', '/two'])
    for (const { connect } of ERA_CLIENTS) clients.push(await connect(gate.url + path));
});
afterAll(async () => {
  for (const client of clients) await client[Symbol.asyncDispose]();
  await gate.close();
  await up[Symbol.asyncDispose]();
});

const OBJECT = { type: 'object' };
const INPUT = '"inputSchema":{"type":"object"}';

/** Members of a tool as JSON text, and what clients get of them. Undefined: they do not get the tool. */
const TOOLS: [members: string, shown: object | undefined][] = [
  ['"x":1', { x: 1, inputSchema: OBJECT }],
  ['"inputSchema":null', { inputSchema: OBJECT }],
  ['"inputSchema":{}', { inputSchema: OBJECT }],
  ['"inputSchema":[]', { inputSchema: OBJECT }],
  ['"inputSchema":true', { inputSchema: OBJECT }],
  [
    '"inputSchema":{"type":"object","properties":{},"required":null}',
    { inputSchema: { ...OBJECT, properties: {} } },
  ],
  ['"inputSchema":{"type":"object","properties":null}', { inputSchema: OBJECT }],
  ['"inputSchema":{"type":"object","properties":[]}', { inputSchema: OBJECT }],
  [
    '"inputSchema":{"type":"object","properties":{"a":true,"b":false,"c":null,"d":{"default":null}}}',
    { inputSchema: { ...OBJECT, properties: { a: {}, b: { not: {} }, c: {}, d: { default: null } } } },
  ],
  [
    '"inputSchema":{"anyOf":[{"required":["a"]}]}',
    { inputSchema: { ...OBJECT, anyOf: [{ required: ['a'] }] } },
  ],
  ['"inputSchema":{"type":["object","null"]}', { inputSchema: OBJECT }],
  ['"inputSchema":{"type":"string"}', undefined],
  ['"inputSchema":false', undefined],
  [
    `${INPUT},"title":null,"description":5,"annotations":{"title":null,"readOnlyHint":true},"icons":null,"execution":null,"_meta":null`,
    { inputSchema: OBJECT, annotations: { readOnlyHint: true } },
  ],
  [`${INPUT},"outputSchema":null`, { inputSchema: OBJECT }],
  [
    `${INPUT},"outputSchema":{"type":"object","properties":{"result":true}}`,
    { inputSchema: OBJECT, outputSchema: { ...OBJECT, properties: { result: expect.anything() } } },
  ],
];

describe('a tool that official clients cannot read', () => {
  test.each(TOOLS)('with %s hides no other tool', async (members, shown) => {
    const good = '{"name":"good","inputSchema":{"type":"object","x":1.0}}';
    results = { 'tools/list': `{"tools":[{"name":"odd",${members}},${good}],"nextCursor":null}` };
    for (const client of clients) expect((await client.tools()).join(' ')).toMatch(/good/);
    for (const [, connect] of ERAS)
      for (const [path, prefix] of [
        ['/one', ''],
        ['/two', 'a_'],
      ]) {
        const caller = await connect(gate.url + path);
        const { text, result } = await caller.ask('tools/list');
        expect(text).toContain(good.replace('good', `${prefix}good`));
        expect(result.tools.find((tool: Json) => tool.name === `${prefix}odd`)).toEqual(
          shown && { name: `${prefix}odd`, ...shown },
        );
      }
  });

  test('with results that are no objects has no output schema for clients of the older revisions', async () => {
    for (const outputSchema of ['{"type":"array"}', '{"type":["null","array"]}', '{"oneOf":[]}']) {
      results = { 'tools/list': `{"tools":[{"name":"odd",${INPUT},"outputSchema":${outputSchema}}]}` };
      const [older, modern] = await Promise.all(
        ERAS.map(
          async ([, connect]) => (await (await connect(`${gate.url}/one`)).ask('tools/list')).result.tools[0],
        ),
      );
      expect(older).toEqual({ name: 'odd', inputSchema: OBJECT });
      expect(modern.outputSchema).toEqual(JSON.parse(outputSchema));
    }
  });

  test('without a schema for objects is left out with a warning', () => {
    expect(gate.log.join('')).toContain(
      'target lists a tool whose inputSchema accepts no object; clients cannot call it, so it is left out\ttarget="a" name="odd"',
    );
  });
});

/** A method with its parameters, the result of the server as JSON text, and what clients get. */
const RESULTS: [method: string, params: Json, result: string, shown: object][] = [
  [
    'tools/call',
    { name: 'say', arguments: {} },
    '{"content":[{"type":"text","text":"null","annotations":{"audience":null},"_meta":null}],"isError":null,"_meta":{"k":null}}',
    { content: [{ type: 'text', text: 'null', annotations: {} }], _meta: { k: null } },
  ],
  [
    'tools/call',
    { name: 'say', arguments: {} },
    '{"content":[],"structuredContent":{"n":null,"big":1.0}}',
    { content: [], structuredContent: { n: null, big: 1 } },
  ],
  [
    'prompts/get',
    { name: 'p' },
    '{"description":null,"messages":[{"role":"user","content":{"type":"text","text":"x","annotations":null}}]}',
    { messages: [{ role: 'user', content: { type: 'text', text: 'x' } }] },
  ],
  [
    'completion/complete',
    { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: '' } },
    '{"completion":{"values":["v"],"total":null,"hasMore":null}}',
    { completion: { values: ['v'] } },
  ],
  [
    'prompts/list',
    {},
    '{"prompts":[{"name":"p","description":null,"arguments":[{"name":"a","required":null}]}]}',
    { prompts: [{ name: 'p', arguments: [{ name: 'a' }] }] },
  ],
  [
    'resources/list',
    {},
    '{"resources":[{"uri":"x:1","name":"r","mimeType":null,"size":null,"annotations":null,"ofLaterRevision":null}]}',
    { resources: [{ uri: 'x:1', name: 'r' }] },
  ],
  [
    'resources/templates/list',
    {},
    '{"resourceTemplates":[{"uriTemplate":"x:{a}","name":"r","ofLaterRevision":null}]}',
    { resourceTemplates: [{ uriTemplate: 'x:{a}', name: 'r' }] },
  ],
];

const SAY = { name: 'say', arguments: {} };
const CHART = '{"type":"com.example/chart","series":[{"x":1.0,"y":null}]}';
const block = (text: string): object => ({ type: 'text', text });

/** The same for values that clients refuse for another reason than null. */
const REFUSED: typeof RESULTS = [
  ['tools/call', SAY, '{"content":"hello"}', { content: [block('hello')] }],
  ['tools/call', SAY, '{"content":null}', { content: [] }],
  ['tools/call', SAY, '{"content":{"type":"text","text":"a"}}', { content: [block('a')] }],
  ['tools/call', SAY, '{"structuredContent":{"n":1.0}}', { content: [], structuredContent: { n: 1 } }],
  [
    'tools/call',
    SAY,
    '{"content":[{"type":"text","text":null},{"text":"a"},"b",{"rows":[1.50]},null,{"type":"text","text":{"n":1.0}}],"isError":"no"}',
    { content: [block(''), block('a'), block('b'), block('{"rows":[1.50]}'), block('{"n":1.0}')] },
  ],
  [
    'tools/call',
    SAY,
    '{"content":[{"type":"resource_link","uri":"x:1","size":"9"},{"type":"resource","resource":{"uri":"x:2","text":null}}]}',
    {
      content: [
        { type: 'resource_link', uri: 'x:1', name: 'x:1' },
        { type: 'resource', resource: { uri: 'x:2', text: '' } },
      ],
    },
  ],
  [
    'tools/call',
    SAY,
    '{"content":[{"type":"text","text":"a","annotations":{"audience":["user","model"],"priority":5,"lastModified":"2025-01-12"}}]}',
    { content: [{ ...block('a'), annotations: { audience: ['user'] } }] },
  ],
  [
    'prompts/get',
    { name: 'p' },
    '{"description":5,"messages":[{"role":"user","content":"hi"}]}',
    { messages: [{ role: 'user', content: block('hi') }] },
  ],
  [
    'prompts/list',
    {},
    '{"prompts":[{"name":"p","arguments":[{"description":"no name"},{"name":"a","required":"yes"}]},{"title":"no name"}]}',
    { prompts: [{ name: 'p', arguments: [{ name: 'a' }] }] },
  ],
  [
    'resources/list',
    {},
    '{"resources":[{"uri":"x:1"},{"uri":"x:2","name":null,"title":"T","icons":[{"src":"s","sizes":"any"},{}]},{"name":"no uri"}]}',
    {
      resources: [
        { uri: 'x:1', name: 'x:1' },
        { uri: 'x:2', name: 'T', title: 'T', icons: [{ src: 's' }] },
      ],
    },
  ],
  [
    'resources/templates/list',
    {},
    '{"resourceTemplates":[{"uriTemplate":"x:{a}","mimeType":[]}]}',
    { resourceTemplates: [{ uriTemplate: 'x:{a}', name: 'x:{a}' }] },
  ],
  [
    'resources/read',
    { uri: 'x:1' },
    '{"contents":[{"uri":"x:1","text":null,"blob":"aGk="},{"uri":"x:2","text":null,"blob":null},{"uri":"x:3","text":{"n":1.0}}]}',
    {
      contents: [
        { uri: 'x:1', blob: 'aGk=' },
        { uri: 'x:2', text: '' },
        { uri: 'x:3', text: '{"n":1.0}' },
      ],
    },
  ],
  [
    'completion/complete',
    { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: '' } },
    `{"completion":{"values":[${'"v",'.repeat(150)}5]}}`,
    { completion: { values: Array.from({ length: 100 }, () => 'v') } },
  ],
  // Members that clients require.
  [
    'tools/call',
    SAY,
    '{"content":[{"type":"resource","resource":null},{"type":"resource","resource":{"text":"x"}},{"type":"resource_link","name":"n"},{"type":"text","text":"a"},null]}',
    {
      content: [
        block('{"type":"resource","resource":null}'),
        block('{"type":"resource","resource":{"text":"x"}}'),
        block('{"type":"resource_link","name":"n"}'),
        block('a'),
      ],
    },
  ],
  // Content of types that no official client knows, and of those of sampling, arrives as a text.
  [
    'tools/call',
    SAY,
    `{"content":[${CHART},{"type":"tool_use","id":"t"},{"type":5,"text":"a"}]}`,
    { content: [block(CHART), block('{"type":"tool_use","id":"t"}'), block('a')] },
  ],
  // Without a type, that of the data; a data URL and base64url instead of base64; and without data, or with a URL, a text.
  [
    'tools/call',
    SAY,
    `{"content":[{"type":"image","data":"iVBORw0KGgo=","_meta":{"n":1}},{"type":"image","data":"data:image/gif;base64,R0lGOD-_"},{"type":"audio","data":"SUQz","mimeType":null},{"type":"audio","data":"AAAA"},{"type":"image","url":"https://x/y.png"},{"type":"image","data":"https://x/y.png","mimeType":"image/png"},{"type":"image","data":null}]}`,
    {
      content: [
        { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png', _meta: { n: 1 } },
        { type: 'image', data: 'R0lGOD+/', mimeType: 'image/gif' },
        { type: 'audio', data: 'SUQz', mimeType: 'audio/mpeg' },
        { type: 'audio', data: 'AAAA', mimeType: 'application/octet-stream' },
        block('{"type":"image","url":"https://x/y.png"}'),
        block('{"type":"image","data":"https://x/y.png","mimeType":"image/png"}'),
        block('{"type":"image","data":null}'),
      ],
    },
  ],
  [
    'prompts/get',
    { name: 'p' },
    '{"messages":[{"role":"system","content":"a"},{"role":"Assistant","content":{"type":"text","text":"b"}},{"role":"model","content":"c"},{"content":"d"},"e",{"role":"assistant","content":["f",{"type":"image","data":"/9j/"}]},{"role":"user","content":[]}]}',
    {
      messages: [
        { role: 'user', content: block('a') },
        { role: 'assistant', content: block('b') },
        { role: 'assistant', content: block('c') },
        { role: 'user', content: block('d') },
        { role: 'user', content: block('e') },
        { role: 'assistant', content: block('f') },
        { role: 'assistant', content: { type: 'image', data: '/9j/', mimeType: 'image/jpeg' } },
      ],
    },
  ],
  [
    'resources/read',
    { uri: 'x:1' },
    '{"contents":[{"uri":"x:1","blob":"not base64!"},{"uri":"x:2","text":null,"blob":"_-8="}]}',
    {
      contents: [
        { uri: 'x:1', text: 'not base64!' },
        { uri: 'x:2', blob: '/+8=' },
      ],
    },
  ],
  [
    'resources/read',
    { uri: 'x:1' },
    '{"contents":{"uri":"x:1","text":"y"}}',
    { contents: [{ uri: 'x:1', text: 'y' }] },
  ],
  [
    'prompts/get',
    { name: 'p' },
    '{"messages":{"role":"user","content":{"type":"text","text":"a"}}}',
    { messages: [{ role: 'user', content: block('a') }] },
  ],
  [
    'prompts/get',
    { name: 'p' },
    '{"messages":[{"role":"user","content":null},{"role":"user"},{"role":"user","content":"a"}]}',
    { messages: [{ role: 'user', content: block('a') }] },
  ],
  ['prompts/list', {}, '{"prompts":null}', { prompts: [] }],
  [
    'resources/list',
    {},
    '{"resources":{"uri":"x:1","name":"r"}}',
    { resources: [{ uri: 'x:1', name: 'r' }] },
  ],
];

const MANY = `{"content":[${'5,'.repeat(200_000)}5]}`;
const LONG = `{"content":[["${'\\"'.repeat(2_300_000)}"]]}`;

const COMPLETE = { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: '' } };

/** Results that stay as sent: what an extension defines, and what cannot be repaired, or not within the limits. */
const AS_SENT: [title: string, method: string, params: Json, result: string][] = [
  ['an unknown member', 'tools/call', SAY, '{"content":[],"toolResult":{"a":null,"content":null}}'],
  ['no completion', 'completion/complete', COMPLETE, '{"completion":null}'],
  ['no values', 'completion/complete', COMPLETE, '{"completion":{"total":null}}'],
  ['no messages', 'prompts/get', { name: 'p' }, '{"messages":"text"}'],
  ['too many elements to repair', 'tools/call', SAY, MANY],
  ['a repaired result that would be too long', 'tools/call', SAY, LONG],
];

/** Schemas of the results in the first SDK. */
const SCHEMAS: Record<string, { safeParse(value: unknown): { success: boolean; error?: unknown } }> = {
  'tools/call': sdk.CallToolResultSchema,
  'prompts/get': sdk.GetPromptResultSchema,
  'prompts/list': sdk.ListPromptsResultSchema,
  'resources/list': sdk.ListResourcesResultSchema,
  'resources/templates/list': sdk.ListResourceTemplatesResultSchema,
  'resources/read': sdk.ReadResourceResultSchema,
  'completion/complete': sdk.CompleteResultSchema,
};

/** The members that may be null by schemas of the protocol. Schemas of OAuth and of answers of clients do not matter here. */
const nullable = (): Set<string> =>
  new Set(
    Object.entries(sdk).flatMap(([name, schema]) => {
      const { shape = {} } = schema as { shape?: Record<string, typeof sdk.ResultSchema> };
      if (/^(?:OAuth|OpenId|Elicit)/.test(name)) return [];
      return Object.entries(shape).flatMap(([key, member]) => (member.safeParse(null).success ? [key] : []));
    }),
  );

const listOf = (result: object): unknown[] => Object.values(result).find(Array.isArray) ?? [];

describe.each(ERAS)('a caller of revision %s', (revision, connect) => {
  test.each(RESULTS)(
    'gets the result of %s (%j) without members that are null',
    async (method, params, result, shown) => {
      results = { [method]: result };
      const caller = await connect(`${gate.url}/one`);
      expect((await caller.ask(method, params)).result).toMatchObject(shown);
      const text = (await caller.ask(method, params)).text;
      expect(text.replaceAll(/"(?:k|n)":null|"text":"null"/g, '')).not.toContain('null');
    },
  );

  test.each(REFUSED)(
    'gets the result of %s (%j) %s as clients read it',
    async (method, params, result, shown) => {
      results = { [method]: result };
      for (const path of method.endsWith('/list') ? ['/one', '/two'] : ['/one']) {
        const caller = await connect(gate.url + path);
        const received = (await caller.ask(method, params)).result;
        expect(SCHEMAS[method]?.safeParse(received)).toMatchObject({ success: true });
        if (path === '/one') expect(received).toMatchObject(shown);
        // Names and URIs have the prefix of the target there.
        else expect(listOf(received)).toHaveLength(listOf(shown).length);
      }
    },
  );

  test.each(AS_SENT)('gets a result with %s as it was sent', async (_, method, params, result) => {
    results = { [method]: result };
    const { text } = await (await connect(`${gate.url}/one`)).ask(method, params);
    // No assertion that prints megabytes.
    expect(text.includes(result.slice(1, -1))).toBe(true);
  });

  test('gets a long list without members that are null: leaving these out is no repair of an element', async () => {
    results = { 'prompts/list': `{"prompts":[${'{"name":"p","title":null},'.repeat(11_000)}{"name":"p"}]}` };
    const { text, result } = await (await connect(`${gate.url}/one`)).ask('prompts/list');
    expect(result.prompts).toHaveLength(11_001);
    expect(text.includes('null')).toBe(false);
  });

  test('gets a structured result that is a list', async () => {
    results = { 'tools/call': '{"content":[],"structuredContent":[1]}' };
    const { result } = await (await connect(`${gate.url}/one`)).call('say');
    expect(result).toMatchObject(
      revision === '2025-11-25'
        ? { content: [{ type: 'text', text: '[1]' }] }
        : { content: [], structuredContent: [1] },
    );
  });
});

test('members that may be null by the schemas of the SDKs stay', () => {
  const members = nullable();
  expect(members).toContain('ttl');
  for (const key of members) {
    const text = `{"result":{"${key}":null}}`;
    expect(withoutNulls(text, 'result', { [key]: null })).toBe(text);
  }
});

test('a server may announce capabilities that are null', async () => {
  const initialize = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'c', version: '1' },
  };
  const { result } = await post(`${gate.url}/one`, {
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: initialize,
  });
  expect(result.capabilities).toEqual({ tools: {}, prompts: {}, resources: {}, completions: {} });
});
