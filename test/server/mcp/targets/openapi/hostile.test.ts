import { describe, expect, test } from 'vitest';
import { mcpConfig } from '../../../../kit/config.ts';
import { gateway } from '../../../../kit/gateway.ts';
import type { Json, McpSession } from '../../../../kit/mcp.ts';
import { apiGateway, literal, openApi } from '../../../../kit/openapi.ts';

const body = (schema: object) => ({ requestBody: { content: { 'application/json': { schema } } } });
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const many = (count: number, operation: (index: number) => object): object =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`/p${index}`, { post: operation(index) }]));

/** All pages of a list, as a client reads them. */
async function allTools(session: McpSession): Promise<{ tools: Json[]; pages: number }> {
  const tools: Json[] = [];
  let cursor: string | undefined;
  let pages = 0;
  do {
    const { result } = await session.request('tools/list', cursor === undefined ? {} : { cursor });
    tools.push(...result.tools);
    cursor = result.nextCursor;
    pages += 1;
  } while (cursor !== undefined);
  return { tools, pages };
}

/** Starts a gateway with the document; resolves to the error of its configuration. */
const refusal = (document: unknown): Promise<string> =>
  gateway(
    mcpConfig([
      {
        name: 'shop',
        openapi: {
          schema: literal(typeof document === 'string' ? document : JSON.stringify(document)),
          host: 'http://localhost:1',
        },
      },
    ]),
  ).then(
    (gate) => gate.close().then(() => 'accepted'),
    (error: Error) => error.message,
  );

describe('large OpenAPI documents', () => {
  const large = openApi(
    many(5_000, (index) => ({ operationId: `op${index}`, summary: `Operation ${index}` })),
  );

  test('a client pages through 5,000 operations, and calls the last one', async () => {
    await using shop = await apiGateway(large);
    const { tools, pages } = await allTools(shop.session);
    expect(new Set(tools.map(({ name }) => name)).size).toBe(5_000);
    expect(pages).toBe(50);
    await shop.call('op4999');
    expect(shop.api.received[0]?.target).toBe('/p4999');
  });

  test('a merged list of several targets contains 5,000 operations', async () => {
    const other = {
      name: 'other',
      openapi: { schema: '{"openapi":"3.0.0","paths":{"/o":{"get":{}}}}', host: 'localhost:1' },
    };
    await using shop = await apiGateway(large, { targets: [other] });
    const { tools } = await allTools(shop.session);
    expect(tools).toHaveLength(5_001);
  });

  test.each([['x'], ['-1'], ['5000'], ['1.5'], ['1e999']])('the cursor %j is invalid', async (cursor) => {
    await using shop = await apiGateway(openApi({ '/a': { get: {} } }));
    expect((await shop.session.request('tools/list', { cursor })).error).toMatchObject({ code: -32602 });
  });

  test('a document with more operations than a merged list can contain is refused', async () => {
    expect(await refusal(openApi(many(6_401, () => ({}))))).toContain('has 6401 operations; at most 6400');
  });

  test('a tool that needs hundreds of schemas has those nearest to it, and its length is bounded', async () => {
    const schemas = Object.fromEntries(
      Array.from({ length: 2_000 }, (_, index) => [
        `S${index}`,
        {
          type: 'object',
          properties: { left: ref(`S${(2 * index + 1) % 2_000}`), right: ref(`S${(2 * index + 2) % 2_000}`) },
        },
      ]),
    );
    await using shop = await apiGateway(
      openApi(
        many(3, () => body(ref('S0'))),
        { components: { schemas } },
      ),
    );
    const [tool] = await shop.tools();
    expect(JSON.stringify(tool).length).toBeLessThan(64 * 1024);
    const { $defs } = tool.inputSchema;
    expect($defs.S1.properties.left).toEqual({ $ref: '#/$defs/S3' });
    const needed = [...JSON.stringify(tool).matchAll(/#\/\$defs\/(\w+)/g)].map(([, name]) => name);
    for (const name of needed) expect($defs).toHaveProperty(name as string);
  });

  test('a schema of 2 MB that a thousand operations use is left out of their tools', async () => {
    const Huge = { enum: Array.from({ length: 20_000 }, (_, index) => `${'v'.repeat(90)}${index}`) };
    await using shop = await apiGateway(
      openApi(
        many(1_000, () => body(ref('Huge'))),
        { components: { schemas: { Huge } } },
      ),
    );
    const [tool] = await shop.tools();
    expect(tool.inputSchema.$defs).toEqual({ Huge: { description: expect.stringContaining('too large') } });
  });
});

describe('hostile OpenAPI documents', () => {
  test.each([
    [
      'a cycle of schema references',
      openApi({ '/a': { post: body(ref('A')) } }, { components: { schemas: { A: ref('B'), B: ref('A') } } }),
      'POST "/a" requestBody: its references form a cycle',
    ],
    [
      'a cycle of parameter references',
      openApi(
        { '/a': { get: { parameters: [{ $ref: '#/components/parameters/P' }] } } },
        { components: { parameters: { P: { $ref: '#/components/parameters/P' } } } },
      ),
      'GET "/a": its references form a cycle',
    ],
    [
      'a reference to a file',
      openApi({ '/a': { post: body({ $ref: 'file:///etc/passwd' }) } }),
      'the reference "file:///etc/passwd" leaves the document',
    ],
    [
      'a reference to a server',
      openApi({ '/a': { $ref: 'http://169.254.169.254/x.yaml#/a' } }),
      'leaves the document',
    ],
    [
      'a reference to a relative file',
      openApi({ '/a': { get: { parameters: [{ $ref: '../p.yaml' }] } } }),
      'leaves the document',
    ],
    ['a reference to nothing', openApi({ '/a': { post: body(ref('Missing')) } }), 'leads to nothing'],
    [
      'a reference to an inherited member',
      openApi({ '/a': { post: body({ $ref: '#/constructor' }) } }),
      'leads to nothing',
    ],
    [
      'a reference with a line break',
      openApi({ '/a': { post: body({ $ref: 'x\n\u001b[2J' }) } }),
      'the reference "x\\n\\u001b[2J" leaves',
    ],
    [
      'deep nesting',
      `{"openapi":"3.1.0","paths":{"/a":${'{"x":'.repeat(100_000)}1${'}'.repeat(100_000)}}}`,
      'nests deeper than 128',
    ],
    ['a cycle of YAML aliases', 'openapi: 3.1.0\npaths: &p\n  /a: *p\n', 'aliases of the YAML document'],
    [
      'YAML aliases that expand to millions of values',
      `openapi: 3.1.0\na: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c]\ne: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d]\nf: [*e, *e, *e, *e, *e, *e, *e, *e, *e]\npaths: {}\n`,
      'aliases of the YAML document',
    ],
    ['Swagger 2.0', { swagger: '2.0', paths: {} }, 'the document is Swagger 2.0: convert it to OpenAPI 3'],
    ['OpenAPI 4', { openapi: '4.0.0', paths: {} }, 'expected `openapi: 3.0.x` or `openapi: 3.1.x`'],
    ['a path instead of a document', './petstore.yaml', 'write `schema: { file: … }`'],
    ['neither JSON nor YAML', '{"openapi": "3.0.0",\n "paths": }', 'the document is not valid JSON'],
    ['no operations', openApi({}), 'has no operations'],
    ['paths that are a list', { openapi: '3.0.0', paths: [] }, 'paths: expected an object'],
    [
      'a parameter without a name',
      openApi({ '/a': { get: { parameters: [{ in: 'query' }] } } }),
      'a parameter has no name',
    ],
  ])('%s is refused with the reason', async (_, document, message) => {
    expect(await refusal(document)).toContain(message);
  });

  test('names of tools consist of letters, digits, - and _, are at most 64 characters long and unique', async () => {
    const ids = [
      'same',
      'same',
      '__proto__',
      '../../etc',
      'a\u0000\u001b[31m\r\nb',
      'x'.repeat(10_240),
      'x'.repeat(10_241),
      '日本',
      '',
      'constructor',
      'get p7',
    ];
    const paths = Object.fromEntries(
      ids.map((operationId, index) => [`/p${index}`, { get: { operationId } }]),
    );
    await using shop = await apiGateway(openApi(paths));
    const names = (await shop.tools()).map(({ name }) => String(name));
    expect(names).toHaveLength(ids.length);
    expect(new Set(names).size).toBe(ids.length);
    for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(names[0]).toBe('same');
    expect(names[1]).toMatch(/^same_[0-9a-f]{8}$/);
    expect(names.slice(2, 5)).toEqual(['proto', 'etc', 'a_31m_b']);
    expect(names[7]).toBe('get_p7');
    for (const [index, name] of names.entries()) {
      await shop.call(name);
      expect(shop.api.received[index]?.target).toBe(`/p${index}`);
    }
  });

  test('the name of a tool does not depend on other operations', async () => {
    const of = async (paths: object) => {
      await using shop = await apiGateway(openApi(paths));
      return (await shop.tools()).map(({ name }) => name);
    };
    const all = await of({
      '/a': { get: { operationId: 'same' } },
      '/b': { get: { operationId: 'same' } },
      '/c': { get: {} },
    });
    expect(
      await of({
        '/0': { get: {} },
        '/a': { get: { operationId: 'same' } },
        '/b': { get: { operationId: 'same' } },
        '/c': { get: {} },
      }),
    ).toEqual(['get_0', ...all]);
  });

  test('parameters and properties named __proto__ are ordinary ones', async () => {
    const text = `{"openapi":"3.1.0","paths":{"/a":{"post":{"operationId":"op",
      "parameters":[{"name":"__proto__","in":"query","schema":{"type":"string"}}],
      "requestBody":{"content":{"application/json":{"schema":{"properties":{"__proto__":{"type":"string"}}}}}}}}}}`;
    await using shop = await apiGateway(text);
    const { text: listed } = await shop.session.request('tools/list');
    expect(listed).toContain('"query":{"type":"object","properties":{"__proto__":{"type":"string"}}');
    expect(listed).toContain('"body":{"properties":{"__proto__":{"type":"string"}}}');
    await shop.call('op', JSON.parse('{"query":{"__proto__":"x"}}'));
    expect(shop.api.received[0]?.target).toBe('/a?__proto__=x');
  });

  test.each([
    ['a query', '/a?admin=true'],
    ['a fragment', '/a#b'],
    ['a dot segment', '/a/../b'],
    ['an encoded dot segment', '/a/%2e%2e/b'],
    ['a dot segment behind an encoded slash', '/a%2F..%2Fb'],
    ['a backslash', '/a\\b'],
    ['a control character', '/a\r\nx: y'],
    ['invalid percent-encoding', '/a%zz'],
  ])('an operation whose path has %s is not offered, which is logged', async (_, path) => {
    await using shop = await apiGateway(openApi({ [path]: { get: {} }, '/fine': { get: {} } }));
    expect((await shop.tools()).map(({ name }) => name)).toEqual(['get_fine']);
    const warning = shop.gate.log.find((line) => line.includes('operations of a target are not offered'));
    expect(warning).toContain('operations=1');
    expect(warning).not.toContain('\r');
  });

  test('an encoded slash in a path template stays encoded', async () => {
    await using shop = await apiGateway(openApi({ '/a%2Fb/{c}': { get: { operationId: 'op' } } }));
    await shop.call('op', { path: { c: 'd' } });
    expect(shop.api.received[0]?.target).toBe('/a%2Fb/d');
  });

  test('operations that cannot be sent are not offered, and the log says why: unknown styles, cookie names, bodies', async () => {
    const required = (place: string, rest: object = {}) => ({
      parameters: [{ name: 'x', in: place, required: true, ...rest }],
    });
    await using shop = await apiGateway(
      openApi({
        '/cookie': { get: required('cookie', { name: 'a; b=c' }) },
        '/style': { get: required('query', { style: 'matrix' }) },
        '/form': { post: { requestBody: { required: true, content: { 'multipart/form-data': {} } } } },
        '/field': {
          post: {
            requestBody: {
              content: {
                'application/x-www-form-urlencoded': { encoding: { file: { contentType: 'image/png' } } },
              },
            },
          },
        },
        '/optional': { get: { parameters: [{ name: 'x', in: 'query', style: 'label' }] } },
      }),
    );
    expect((await shop.tools()).map(({ name }) => name)).toEqual(['get_optional']);
    const line = shop.gate.log.find((each) => each.includes('operations of a target are not offered'));
    for (const reason of [
      'parameter \\"a; b=c\\" in \\"cookie\\" cannot be sent in the style \\"form\\"',
      'parameter \\"x\\" in \\"query\\" cannot be sent in the style \\"matrix\\"',
      'its body is \\"multipart/form-data\\", not JSON or a form',
      'its form field \\"file\\" cannot be written',
    ])
      expect(line).toContain(reason);
  });
});
