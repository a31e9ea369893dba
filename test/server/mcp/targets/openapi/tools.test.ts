import { describe, expect, test } from 'vitest';
import { apiGateway, openApi } from '../../../../kit/openapi.ts';

const tool = async (document: unknown, name?: string) => {
  await using shop = await apiGateway(document);
  const tools = await shop.tools();
  return name === undefined ? tools[0] : tools.find((each) => each.name === name);
};

const ok = { responses: { 200: { description: 'ok' } } };
const pet = {
  type: 'object',
  required: ['name', 'id'],
  properties: { id: { type: 'integer', readOnly: true }, name: { type: 'string' } },
};

describe('tools of an OpenAPI target', () => {
  test('an operation becomes a tool with its arguments grouped by place, its description and hints', async () => {
    const found = await tool(
      openApi({
        '/pets/{petId}': {
          parameters: [{ name: 'petId', in: 'path', required: true, schema: { type: 'integer' } }],
          put: {
            operationId: 'updatePet',
            summary: 'Update a pet',
            description: 'Replaces the pet.',
            parameters: [
              { name: 'dry', in: 'query', description: 'Only check', schema: { type: 'boolean' } },
              { name: 'If-Match', in: 'header', required: true, schema: { type: 'string' } },
            ],
            requestBody: { required: true, content: { 'application/json': { schema: pet } } },
            ...ok,
          },
        },
      }),
    );
    expect(found).toEqual({
      name: 'updatePet',
      title: 'Update a pet',
      description: 'Replaces the pet.',
      annotations: { readOnlyHint: false, idempotentHint: true },
      inputSchema: {
        type: 'object',
        properties: {
          path: {
            type: 'object',
            properties: { petId: { type: 'integer' } },
            required: ['petId'],
            additionalProperties: false,
          },
          query: {
            type: 'object',
            properties: { dry: { type: 'boolean', description: 'Only check' } },
            additionalProperties: false,
          },
          header: {
            type: 'object',
            properties: { 'If-Match': { type: 'string' } },
            required: ['If-Match'],
            additionalProperties: false,
          },
          body: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
        },
        required: ['path', 'header', 'body'],
        additionalProperties: false,
      },
    });
  });

  test('GET is read-only, and POST has no promise about repetition', async () => {
    await using shop = await apiGateway(openApi({ '/a': { get: ok, post: ok } }));
    const hints = (await shop.tools()).map(({ name, annotations }) => [name, annotations]);
    expect(hints).toEqual([
      ['get_a', { readOnlyHint: true }],
      ['post_a', { readOnlyHint: false }],
    ]);
  });

  test('a recursive schema stays finite: it refers to itself in $defs', async () => {
    const Node = { type: 'object', properties: { next: { $ref: '#/components/schemas/Node' } } };
    const body = { content: { 'application/json': { schema: { $ref: '#/components/schemas/Node' } } } };
    const { inputSchema } = await tool(
      openApi({ '/a': { post: { requestBody: body, ...ok } } }, { components: { schemas: { Node } } }),
    );
    expect(inputSchema.properties.body).toEqual({ $ref: '#/$defs/Node' });
    expect(inputSchema.$defs).toEqual({
      Node: { type: 'object', properties: { next: { $ref: '#/$defs/Node' } } },
    });
  });

  test('parameters, bodies and path items are found by local references', async () => {
    const { inputSchema } = await tool(
      openApi(
        { '/a/{id}': { $ref: '#/components/pathItems/A~1B' } },
        {
          components: {
            pathItems: {
              'A/B': {
                post: {
                  parameters: [{ $ref: '#/components/parameters/id' }],
                  requestBody: { $ref: '#/components/requestBodies/Any' },
                },
              },
            },
            parameters: { id: { name: 'id', in: 'path', required: true, schema: { type: 'string' } } },
            requestBodies: { Any: { content: { 'application/json': { schema: { type: 'array' } } } } },
          },
        },
      ),
    );
    expect(Object.keys(inputSchema.properties.path.properties)).toEqual(['id']);
    expect(inputSchema.properties.body).toEqual({ type: 'array' });
  });

  test('schemas of OpenAPI 3.0 become JSON Schema: nullable, exclusive bounds, and nothing beside a reference', async () => {
    const schema = {
      type: 'object',
      properties: {
        size: { type: 'integer', nullable: true, minimum: 0, exclusiveMinimum: true, example: 3 },
        kind: { type: 'string', nullable: true, enum: ['a'] },
        nullable: { type: 'boolean' },
        pet: { $ref: '#/components/schemas/Pet', description: 'ignored' },
      },
      xml: { name: 'x' },
    };
    const { inputSchema } = await tool({
      openapi: '3.0.3',
      paths: { '/a': { post: { requestBody: { content: { 'application/json': { schema } } }, ...ok } } },
      components: { schemas: { Pet: { type: 'string' } } },
    });
    expect(inputSchema.properties.body).toEqual({
      type: 'object',
      properties: {
        size: { type: ['integer', 'null'], exclusiveMinimum: 0 },
        kind: { type: ['string', 'null'], enum: ['a', null] },
        nullable: { type: 'boolean' },
        pet: { $ref: '#/$defs/Pet' },
      },
    });
  });

  test('keywords with values that JSON Schema does not allow are left out of a tool', async () => {
    const schema = {
      type: 'file',
      required: true,
      minimum: 'x',
      enum: 'a',
      pattern: '^{x',
      title: 'kept',
      discriminator: {},
    };
    const body = { content: { 'application/json': { schema } } };
    const { inputSchema } = await tool(openApi({ '/a': { post: { requestBody: body, ...ok } } }));
    expect(inputSchema.properties.body).toEqual({ title: 'kept' });
  });

  test('the document may be written in YAML', async () => {
    const found = await tool(
      'openapi: 3.0.0\npaths:\n  /a: &item\n    get:\n      summary: read\n  /b: *item\n',
      'get_b',
    );
    expect(found?.description).toBe('read');
  });

  test('the target introduces itself with title and version of the document, and answers ping', async () => {
    await using shop = await apiGateway(openApi({ '/a': { get: ok } }));
    const { result } = shop.session.initialize;
    expect(result).toMatchObject({
      protocolVersion: '2025-06-18',
      serverInfo: { name: 'Shop', version: '1.2.3' },
      capabilities: { tools: {} },
    });
    expect((await shop.session.request('ping')).result).toEqual({});
    expect((await shop.session.request('prompts/list')).error.code).toBe(-32601);
  });

  test('tools of several targets are prefixed, and a call reaches the API', async () => {
    await using shop = await apiGateway(openApi({ '/a': { get: { operationId: 'read', ...ok } } }), {
      targets: [
        {
          name: 'other',
          openapi: { schema: '{"openapi":"3.0.0","paths":{"/o":{"get":{}}}}', host: 'localhost:1' },
        },
      ],
    });
    expect((await shop.tools()).map(({ name }) => name)).toEqual(['shop_read', 'other_get_o']);
    expect((await shop.call('shop_read')).content).toEqual([{ type: 'text', text: 'ok' }]);
  });
});
