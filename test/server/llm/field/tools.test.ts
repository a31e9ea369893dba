import { describe, expect, test } from 'vitest';
import { field, HELLO, type Loose, user } from './field.ts';

// Definitions of tools, their choice, and marks for caches. Each test names the report that its input is from.

const ask = field();

const CITY = { type: 'object', properties: { city: { type: 'string' } } };

describe('definitions of tools', () => {
  // lmstudio-ai/lmstudio-bug-tracker#2254
  test.each([
    ['completions', 'responses'],
    ['completions', 'messages'],
    ['completions', 'bedrock'],
    ['responses', 'completions'],
    ['responses', 'messages'],
    ['messages', 'completions'],
    ['messages', 'responses'],
  ] as const)(
    'a tool of %s without parameters is an object without properties for %s',
    async (client, provider) => {
      const schemas = client === 'messages' ? [{ type: 'object' }] : [{}, { type: 'object' }, undefined];
      for (const schema of schemas) {
        const tool = { name: 'stop', description: 'Stops.' };
        const tools = {
          completions: [{ type: 'function', function: { ...tool, parameters: schema } }],
          responses: [{ type: 'function', ...tool, parameters: schema, strict: false }],
          messages: [{ ...tool, input_schema: schema }],
        }[client];
        const request = client === 'responses' ? { input: 'Hi' } : { messages: [user('Hi')], max_tokens: 50 };
        const { status, sent } = await ask(client, provider, { ...request, tools }, HELLO[provider]);
        expect(status).toBe(200);
        const defined = {
          completions: sent.tools?.[0].function?.parameters,
          responses: sent.tools?.[0].parameters,
          messages: sent.tools?.[0].input_schema,
          bedrock: sent.toolConfig?.tools[0].toolSpec.inputSchema.json,
        }[provider];
        expect(defined).toEqual({ type: 'object', properties: {} });
      }
    },
  );

  // Portkey-AI/gateway#1203
  test('schemas that only JSON Schema can express reach Gemini whole', async () => {
    const schema = {
      type: 'object',
      properties: {
        path: { type: ['string', 'null'] },
        all: { allOf: [{ type: 'object', additionalProperties: false }, { anyOf: [CITY] }] },
      },
      $defs: { city: CITY },
      additionalProperties: false,
      $schema: 'http://json-schema.org/draft-07/schema#',
    };
    const tools = [{ type: 'function', function: { name: 'read', parameters: schema, strict: true } }];
    const { status, sent } = await ask(
      'completions',
      'generateContent',
      { messages: [user('Hi')], tools },
      HELLO.generateContent,
    );
    expect(status).toBe(200);
    const [declaration] = sent.tools[0].functionDeclarations;
    expect(declaration).not.toHaveProperty('strict');
    expect(declaration).not.toHaveProperty('parameters');
    expect(declaration.parametersJsonSchema).toEqual(schema);
  });

  // DEEIX-AI/DEEIX-Chat#546, anomalyco/opencode#12295, google-gemini/gemini-cli#13326, nodetool-ai/nodetool#4761: Gemini follows
  // references to `$defs` only, refuses other members beside them, and knows neither `allOf` nor `const`.
  test.each<[string, schema: object, sent: object]>([
    [
      'references elsewhere point to $defs',
      { properties: { one: CITY, all: { type: 'array', items: { $ref: '#/properties/one' } } } },
      {
        properties: { one: CITY, all: { type: 'array', items: { $ref: '#/$defs/one' } } },
        $defs: { one: CITY },
      },
    ],
    [
      'definitions of draft 7 are $defs',
      {
        properties: { one: { anyOf: [{ $ref: '#/definitions/c~1i%20t' }, { type: 'null' }] } },
        definitions: { 'c/i t': CITY },
      },
      {
        properties: { one: { anyOf: [{ $ref: '#/$defs/c_i_t' }, { type: 'null' }] } },
        $defs: { c_i_t: CITY },
      },
    ],
    [
      'a reference with members beside it is the only schema of anyOf',
      {
        properties: {
          one: { $ref: '#/$defs/city', title: 'One', type: 'object' },
          map: { additionalProperties: { $ref: '#/$defs/a~1b' } },
        },
        $defs: { city: CITY, 'a/b': CITY },
      },
      {
        properties: {
          one: { title: 'One', type: 'object', anyOf: [{ $ref: '#/$defs/city' }] },
          map: { additionalProperties: { $ref: '#/$defs/a~1b' } },
        },
        $defs: { city: CITY, 'a/b': CITY },
      },
    ],
    [
      'a schema that contains itself does so by way of $defs',
      {
        properties: { next: { $ref: '#' }, inner: CITY, again: { $ref: '#/properties/inner' } },
        $defs: { city: CITY },
      },
      {
        properties: { next: { $ref: '#/$defs/schema' }, inner: CITY, again: { $ref: '#/$defs/inner' } },
        $defs: {
          city: CITY,
          schema: {
            type: 'object',
            properties: {
              next: { $ref: '#/$defs/schema' },
              inner: { $ref: '#/$defs/inner' },
              again: { $ref: '#/$defs/inner' },
            },
          },
          inner: CITY,
        },
      },
    ],
    [
      'allOf with one schema is that schema, and const a list of one',
      {
        properties: {
          one: { allOf: [{ $ref: '#/$defs/kind' }], description: 'One', default: 'a' },
          $ref: { type: 'string', const: 'b' },
          is: { const: true },
          data: { type: 'object', default: { $ref: 1, const: 2 }, enum: [{ const: 3 }] },
        },
        $defs: { kind: { const: 'a' } },
      },
      {
        properties: {
          one: { description: 'One', default: 'a', anyOf: [{ $ref: '#/$defs/kind' }] },
          $ref: { type: 'string', enum: ['b'] },
          is: { const: true },
          data: { type: 'object', default: { $ref: 1, const: 2 }, enum: [{ const: 3 }] },
        },
        $defs: { kind: { enum: ['a'] } },
      },
    ],
    [
      'references that lead nowhere, or to each other, stay',
      {
        properties: {
          a: { $ref: '#/$defs/none', title: 'A' },
          b: { $ref: 'https://example.com/b.json' },
          c: { $ref: '#/properties/d' },
          d: { $ref: '#/properties/c' },
        },
      },
      {
        properties: {
          a: { $ref: '#/$defs/none', title: 'A' },
          b: { $ref: 'https://example.com/b.json' },
          c: { $ref: '#/$defs/d' },
          d: { $ref: '#/$defs/c' },
        },
        $defs: { d: { $ref: '#/$defs/c' }, c: { $ref: '#/$defs/d' } },
      },
    ],
  ])('in schemas for Gemini, %s', async (_, schema, expected) => {
    const parameters = { type: 'object', ...schema };
    const request = {
      messages: [user('Hi')],
      tools: [{ type: 'function', function: { name: 'weather', parameters } }],
      response_format: { type: 'json_schema', json_schema: { name: 'x', schema: parameters } },
    };
    const { status, sent } = await ask('completions', 'generateContent', request, HELLO.generateContent);
    expect(status).toBe(200);
    const [{ parametersJsonSchema }] = sent.tools[0].functionDeclarations;
    expect(parametersJsonSchema).toEqual({ type: 'object', ...expected });
    expect(sent.generationConfig.responseJsonSchema).toEqual(parametersJsonSchema);
  });
});

describe('names of tools', () => {
  const NAMES = ['calendar.respondToEvent', 'calendar_respondToEvent', `mcp__${'x'.repeat(80)}`, '3d'];
  const REQUESTS = {
    completions: {
      messages: [
        user('Hi'),
        {
          role: 'assistant',
          tool_calls: [{ id: 'a', type: 'function', function: { name: NAMES[0], arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'a', content: '1' },
      ],
      tools: NAMES.map((name) => ({ type: 'function', function: { name, parameters: CITY } })),
      tool_choice: { type: 'function', function: { name: NAMES[0] } },
    },
    messages: {
      max_tokens: 50,
      messages: [
        user('Hi'),
        { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: NAMES[0], input: {} }] },
        user([{ type: 'tool_result', tool_use_id: 'a', content: '1' }]),
      ],
      tools: NAMES.map((name) => ({ name, input_schema: CITY })),
      tool_choice: { type: 'tool', name: NAMES[0] },
    },
    generateContent: {
      contents: [
        { role: 'user', parts: [{ text: 'Hi' }] },
        { role: 'model', parts: [{ functionCall: { name: NAMES[0], args: {} } }] },
        { role: 'user', parts: [{ functionResponse: { name: NAMES[0], response: { output: '1' } } }] },
      ],
      tools: [{ functionDeclarations: NAMES.map((name) => ({ name, parametersJsonSchema: CITY })) }],
      toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: [NAMES[0]] } },
    },
  };

  // openai/codex#8174
  test.each([
    ['completions', 'messages'],
    ['completions', 'bedrock'],
    ['completions', 'generateContent'],
    ['messages', 'completions'],
    ['messages', 'responses'],
    ['generateContent', 'completions'],
    ['generateContent', 'messages'],
  ] as const)('names of %s that %s refuses are plain there, and come back', async (client, provider) => {
    const first = await ask(client, provider, REQUESTS[client], HELLO[provider]);
    expect(first.status).toBe(200);
    const { sent } = first;
    const names: string[] = {
      completions: () => sent.tools.map((tool: Loose) => tool.function.name),
      responses: () => sent.tools.map((tool: Loose) => tool.name),
      messages: () => sent.tools.map((tool: Loose) => tool.name),
      bedrock: () => sent.toolConfig.tools.map((tool: Loose) => tool.toolSpec.name),
      generateContent: () => sent.tools[0].functionDeclarations.map((tool: Loose) => tool.name),
    }[provider]();
    const text = JSON.stringify(sent);
    expect(text).not.toMatch(/calendar\.|x{70}|"3d"/);
    const [name = ''] = names;
    // The definition, the call, the choice; for Gemini also the result.
    expect(text.split(`"${name}"`).length - 1).toBeGreaterThanOrEqual(3);
    expect(new Set(names).size).toBe(4);
    for (const each of names) expect(each).toMatch(/^[A-Za-z_][\w-]{0,63}$/);
    expect(names[1]).toBe('calendar_respondToEvent');

    const calls = names.map((each, index) => ({ id: `c${index}`, name: each }));
    const body = {
      completions: {
        choices: [
          {
            index: 0,
            message: {
              role: 'assistant',
              tool_calls: calls.map(({ id, ...named }) => ({
                id,
                type: 'function',
                function: { ...named, arguments: '{}' },
              })),
            },
            finish_reason: 'tool_calls',
          },
        ],
      },
      responses: {
        output: calls.map((each) => ({
          type: 'function_call',
          call_id: each.id,
          name: each.name,
          arguments: '{}',
        })),
      },
      messages: {
        content: calls.map((each) => ({ type: 'tool_use', ...each, input: {} })),
        stop_reason: 'tool_use',
      },
      bedrock: {
        output: {
          message: {
            role: 'assistant',
            content: calls.map((each) => ({ toolUse: { toolUseId: each.id, name: each.name, input: {} } })),
          },
        },
        stopReason: 'tool_use',
      },
      generateContent: {
        candidates: [
          {
            content: {
              role: 'model',
              parts: calls.map((each) => ({ functionCall: { name: each.name, args: {} } })),
            },
            finishReason: 'STOP',
          },
        ],
      },
    }[provider];
    const answer = { ...HELLO[provider].body, ...body };
    for (const stream of [false, true]) {
      const { text: got } = await ask(client, provider, { ...REQUESTS[client], stream }, { body: answer });
      for (const each of NAMES) expect(got).toContain(`"name":"${each}"`);
    }
  });
});

describe('the choice of tools', () => {
  const tools = [{ type: 'function', function: { name: 'weather', parameters: CITY } }];

  // Portkey-AI/gateway#1474
  test('no tool may be called: Claude gets the choice, and Bedrock, which has none, no tools', async () => {
    const request = { messages: [user('Hi')], tools, tool_choice: 'none' };
    const claude = await ask('completions', 'messages', request, HELLO.messages);
    expect(claude.sent).toMatchObject({ tool_choice: { type: 'none' }, tools: [{ name: 'weather' }] });
    const gemini = await ask('completions', 'generateContent', request, HELLO.generateContent);
    expect(gemini.sent.toolConfig).toEqual({ functionCallingConfig: { mode: 'NONE' } });
    const bedrock = await ask('completions', 'bedrock', request, HELLO.bedrock);
    expect(bedrock.status).toBe(200);
    expect(bedrock.sent).not.toHaveProperty('toolConfig');
  });

  // vxcontrol/pentagi#196: Bedrock refuses calls in a conversation without tools.
  test.each(['bedrock', 'messages'] as const)(
    '%s gets the tools of a conversation that declares none',
    async (provider) => {
      const called = {
        id: 'a',
        type: 'function',
        function: { name: 'weather', arguments: '{"city":"Rome"}' },
      };
      const messages = [
        user('Weather?'),
        { role: 'assistant', content: null, tool_calls: [called, { ...called, id: 'b' }] },
        { role: 'tool', tool_call_id: 'a', content: 'Sun' },
        { role: 'tool', tool_call_id: 'b', content: 'Sun' },
        user('Summarize.'),
      ];
      const { status, sent } = await ask('completions', provider, { messages }, HELLO[provider]);
      expect(status).toBe(200);
      const description = expect.stringContaining('Do not call');
      const schema = { type: 'object', properties: {} };
      const { tools, tool_choice, toolConfig } = sent;
      expect({ tools, tool_choice, toolConfig }).toEqual(
        provider === 'bedrock'
          ? {
              toolConfig: {
                tools: [{ toolSpec: { name: 'weather', description, inputSchema: { json: schema } } }],
              },
            }
          : { tools: [{ name: 'weather', input_schema: schema }], tool_choice: { type: 'none' } },
      );
      if (provider !== 'bedrock') return;
      // vercel/ai#7528: nor has it a choice for no calls.
      const parameters = { type: 'object', properties: { city: { type: 'string' } } };
      const tools_ = ['weather', 'other'].map((name) => ({
        type: 'function',
        function: { name, parameters },
      }));
      const request = { messages, tools: tools_, tool_choice: 'none' };
      expect((await ask('completions', provider, request, HELLO[provider])).sent['toolConfig']).toEqual(
        toolConfig,
      );
    },
  );
});

describe('marks for caches', () => {
  const MARK = { type: 'ephemeral' };
  const system = [{ type: 'text', text: 'Long', cache_control: MARK }];
  const tools = [{ name: 'weather', input_schema: CITY, cache_control: MARK }];

  // Portkey-AI/gateway#1579
  test('marks of clients reach Claude on Vertex and on Bedrock', async () => {
    const content = [{ type: 'text', text: 'Hi', cache_control: MARK }];
    const request = { max_tokens: 50, system, tools, messages: [user(content)] };
    const vertex = await ask('messages', 'vertex', request, HELLO.vertex);
    expect(vertex.sent).toMatchObject({ system, tools, messages: [{ content }] });
    const bedrock = await ask('messages', 'bedrock', request, HELLO.bedrock);
    expect(bedrock.sent).toMatchObject({
      system: [{ text: 'Long' }, { cachePoint: { type: 'default' } }],
      toolConfig: { tools: [{ toolSpec: { name: 'weather' } }, { cachePoint: { type: 'default' } }] },
      messages: [{ content: [{ text: 'Hi' }, { cachePoint: { type: 'default' } }] }],
    });
    const chat = { messages: [{ role: 'system', content: system }, user(content)] };
    const translated = await ask('completions', 'vertex', chat, HELLO.vertex);
    expect(translated.sent).toMatchObject({ system, messages: [{ content }] });
  });
});

describe('marks that the gateway sets', () => {
  const caching = field({
    promptCaching: { cacheSystem: true, cacheMessages: true, cacheTools: true, minTokens: 0 },
  });

  // anthropics/claude-code#62296
  test.each(['messages', 'completions'] as const)(
    'an empty text of %s is never marked for the cache',
    async (client) => {
      const image = {
        messages: {
          type: 'image',
          source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' },
        },
        completions: { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
      }[client];
      const turn = user([image, { type: 'text', text: '' }]);
      const request = { max_tokens: 50, messages: [turn, { role: 'assistant', content: 'Yes' }, turn] };
      const { status, sent } = await caching(client, 'vertex', request, HELLO.vertex);
      expect(status).toBe(200);
      for (const { content } of sent.messages as Loose[])
        for (const block of Array.isArray(content) ? content : [])
          if (block.text === '') expect(block).not.toHaveProperty('cache_control');
      expect(JSON.stringify(sent.messages)).toContain('cache_control');
    },
  );
});
