import { describe, expect, test } from 'vitest';
import { field, HELLO, type Loose, TOOLS, user } from './field.ts';

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

  // archestra-ai/archestra#7375
  test('a custom tool that Cursor writes as in the Responses API is a custom tool', async () => {
    const format = { type: 'grammar', syntax: 'lark', definition: 'start: "a"' };
    const tools = [{ type: 'custom', name: 'ApplyPatch', description: 'Patches', format }];
    const { status, sent } = await ask(
      'completions',
      'responses',
      { messages: [user('Hi')], tools },
      HELLO.responses,
    );
    expect(status).toBe(200);
    expect(sent.tools).toEqual(tools);
  });

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

// router-for-me/CLIProxyAPI#1725: Claude Code declares tools that Claude gets only when a search has found them.
test.each(['completions', 'responses', 'generateContent', 'bedrock'] as const)(
  'tools that are loaded later reach %s when a search has found them',
  async (provider) => {
    const tools = [
      { name: 'ToolSearch', input_schema: CITY },
      { name: 'Read', input_schema: CITY, defer_loading: true },
      { name: 'Write', input_schema: CITY, defer_loading: true },
    ];
    const messages = [
      user('Read it'),
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'ToolSearch', input: {} }] },
      user([
        {
          type: 'tool_result',
          tool_use_id: 'a',
          content: [{ type: 'tool_reference', tool_name: 'Read' }],
        },
      ]),
    ];
    const names = (sent: Loose): string[] =>
      ({
        completions: () => sent.tools.map((tool: Loose) => tool.function.name),
        responses: () => sent.tools.map((tool: Loose) => tool.name),
        generateContent: () => sent.tools[0].functionDeclarations.map((tool: Loose) => tool.name),
        bedrock: () => sent.toolConfig.tools.map((tool: Loose) => tool.toolSpec.name),
      })[provider]();
    const request = { max_tokens: 50, tools };
    const first = await ask(
      'messages',
      provider,
      { ...request, messages: [user('Read it')] },
      HELLO[provider],
    );
    expect(first.status).toBe(200);
    expect(names(first.sent)).toEqual(['ToolSearch']);
    const found = await ask('messages', provider, { ...request, messages }, HELLO[provider]);
    expect(found.status).toBe(200);
    expect(names(found.sent)).toEqual(['ToolSearch', 'Read']);
    expect(JSON.stringify(found.sent)).toContain('The tool Read is available now.');
  },
);

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

describe('marks for caches of Bedrock', () => {
  const mark = { cache_control: { type: 'ephemeral', ttl: '1h' } };
  const hour = { cachePoint: { type: 'default', ttl: '1h' } };
  const usual = { cachePoint: { type: 'default' } };
  const request = {
    max_tokens: 50,
    system: [{ type: 'text', text: 'Long', ...mark }],
    tools: [{ name: 'weather', input_schema: CITY, ...mark }],
    messages: [
      user('Weather?'),
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'weather', input: {} }] },
      user([
        { type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: 'Sun', ...mark }] },
        { type: 'text', text: 'Go on', ...mark },
      ]),
    ],
  };
  const marks = ({ system, toolConfig, messages }: Loose): Loose => ({
    system: system.slice(1),
    tools: toolConfig.tools.slice(1),
    messages: messages.at(-1).content.filter((block: Loose) => !('text' in block || 'toolResult' in block)),
  });

  // BerriAI/litellm#39210: other models refuse the request, NousResearch/hermes-agent#97281: Nova that with a mark of a tool.
  // maximhq/bifrost#6933: names of profiles do not say which model they have. Portkey-AI/gateway#1762: marks inside a result.
  test.each([
    ['eu.anthropic.claude-sonnet-4-5-20250929-v1:0', [hour], [hour], [hour, hour]],
    [
      'arn:aws:bedrock:us-west-2:123456789012:application-inference-profile/abc123',
      [hour],
      [hour],
      [hour, hour],
    ],
    ['us.amazon.nova-pro-v1:0', [usual], [], [usual]],
    ['nvidia.nemotron-super-3-120b', [], [], []],
    ['arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.meta.llama4-scout-17b-v1:0', [], [], []],
  ])('%s has those that it accepts', async (model, system, tools, messages) => {
    const { status, sent } = await ask('messages', 'bedrock', { ...request, model }, HELLO.bedrock);
    expect(status).toBe(200);
    expect(marks(sent)).toEqual({ system, tools, messages });
  });
});

describe('marks that the gateway sets', () => {
  const caching = field({
    promptCaching: { cacheSystem: true, cacheMessages: true, cacheTools: true, minTokens: 0 },
  });

  // decolua/9router#3567: Anthropic refuses the mark of a tool that is loaded when it is found.
  test('a tool that is loaded later is not marked', async () => {
    const tools = [
      { name: 'search', input_schema: CITY },
      { name: 'weather', input_schema: CITY, defer_loading: true },
    ];
    const { sent } = await caching(
      'messages',
      'vertex',
      { max_tokens: 50, tools, messages: [user('Hi')] },
      HELLO.vertex,
    );
    expect(sent.tools).toEqual([{ ...tools[0], cache_control: { type: 'ephemeral' } }, tools[1]]);
  });

  // NousResearch/hermes-agent#97281
  test('tools of Nova are not marked', async () => {
    const request = { model: 'us.amazon.nova-pro-v1:0', messages: [user('Hi')], tools: TOOLS };
    const { sent } = await caching('completions', 'bedrock', request, HELLO.bedrock);
    expect(sent.toolConfig.tools).toHaveLength(1);
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
