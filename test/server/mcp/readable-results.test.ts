import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
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
    '{"resources":[{"uri":"x:1","name":"r","mimeType":null,"size":null,"annotations":null}]}',
    { resources: [{ uri: 'x:1', name: 'r' }] },
  ],
];

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
