import { describe, expect, test } from 'vitest';
import { call, field, HELLO, type Loose, TOOLS, user, weather } from './field.ts';

// What providers get of conversations. Each test names the report that its input is from.

const ask = field();

const PNG = 'iVBORw0KGgo=';
const PDF = 'JVBERi0xLjQK';

describe('results of tools', () => {
  // google-gemini/gemini-cli#4504
  test('Gemini gets as many results as calls, in the next content, whatever is between them', async () => {
    const use = (id: string, city: string) => ({ type: 'tool_use', id, name: 'weather', input: { city } });
    const result = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: id });
    const { sent } = await ask(
      'messages',
      'generateContent',
      {
        max_tokens: 50,
        tools: [{ name: 'weather', input_schema: weather.parameters }],
        messages: [
          user('Weather?'),
          {
            role: 'assistant',
            content: [use('a', 'Paris'), { type: 'text', text: 'and' }, use('b', 'Rome')],
          },
          user([result('b'), { type: 'text', text: 'Hurry' }, result('a')]),
        ],
      },
      HELLO.generateContent,
    );
    const responses = sent.contents.map(
      ({ parts }: Loose) => parts.filter((part: Loose) => part.functionResponse !== undefined).length,
    );
    expect(responses[2]).toBe(2);
    expect(sent.contents[1].parts.filter((part: Loose) => part.functionCall !== undefined)).toHaveLength(2);
  });

  // Yeachan-Heo/gajae-code#4807
  test.each([
    ['messages', 'messages', 'content'],
    ['bedrock', 'messages', 'content'],
    ['generateContent', 'contents', 'parts'],
  ] as const)(
    '%s gets the results of parallel calls before images that are between them',
    async (provider, turns, blocks) => {
      const image = {
        role: 'user',
        content: [{ type: 'input_image', image_url: `data:image/png;base64,${PNG}` }],
      };
      const called = ['a', 'b'].map((id) => ({
        type: 'function_call',
        call_id: id,
        name: 'weather',
        arguments: '{}',
      }));
      const [first, second] = ['a', 'b'].map((id) => ({
        type: 'function_call_output',
        call_id: id,
        output: id,
      }));
      const { sent } = await ask(
        'responses',
        provider,
        {
          tools: [{ type: 'function', ...weather, strict: false }],
          input: [user('Weather?'), ...called, image, first, image, second],
        },
        HELLO[provider],
      );
      expect(sent[turns]).toHaveLength(3);
      const results = sent[turns][2][blocks].map((block: Loose) =>
        /result|response/i.test(JSON.stringify(block)),
      );
      expect(results).toEqual([true, true, false, false]);
    },
  );

  // BerriAI/litellm#16195, BerriAI/litellm#20403
  test.each([
    ['messages', 'image', { type: 'base64', media_type: 'image/png', data: PNG }],
    ['bedrock', 'image', { bytes: PNG }],
    ['generateContent', 'inlineData', { mimeType: 'image/png', data: PNG }],
    ['responses', 'input_image', `data:image/png;base64,${PNG}`],
  ] as const)('%s gets an image in a message of a tool', async (provider, name, content) => {
    const { status, sent } = await ask(
      'completions',
      provider,
      {
        tools: TOOLS,
        messages: [
          user('Look.'),
          { role: 'assistant', content: null, tool_calls: [call('a', 'Paris')] },
          {
            role: 'tool',
            tool_call_id: 'a',
            content: [
              { type: 'text', text: 'Here:' },
              { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
            ],
          },
        ],
      },
      HELLO[provider],
    );
    const text = JSON.stringify(sent);
    expect([status, text]).toEqual([200, expect.stringContaining(name)]);
    expect(text).toContain(JSON.stringify(content).slice(1, -1));
  });

  // BerriAI/litellm#20426
  test('a document that Bedrock gets alone has its name as text beside it, after results of tools', async () => {
    const file = {
      type: 'file',
      file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${PDF}` },
    };
    const texts = async (content: object[]): Promise<Loose> => {
      const { sent } = await ask('completions', 'bedrock', { messages: [user(content)] }, HELLO.bedrock);
      return sent.messages[0].content.map((block: Loose) => block.text ?? Object.keys(block)[0]);
    };
    expect(await texts([file])).toEqual(['document', 'a-pdf']);
    expect(await texts([file, { type: 'text', text: 'What is it?' }])).toEqual(['document', 'What is it?']);
  });

  // router-for-me/CLIProxyAPI#512
  test.each(['completions', 'bedrock', 'generateContent', 'responses'] as const)(
    '%s gets a conversation whose thinking has a mark of the cache',
    async (provider) => {
      const thinking = {
        type: 'thinking',
        thinking: 'Hm.',
        signature: 'S',
        cache_control: { type: 'ephemeral' },
      };
      const { status } = await ask(
        'messages',
        provider,
        {
          max_tokens: 50,
          messages: [
            user('Hi'),
            { role: 'assistant', content: [thinking, { type: 'text', text: 'Hello.' }] },
            user('Go on'),
          ],
        },
        HELLO[provider],
      );
      expect(status).toBe(200);
    },
  );

  // openai/codex#8479
  test('results of parallel calls follow one message with all calls', async () => {
    const item = (name: string) => ({
      type: 'function_call',
      call_id: name,
      name: 'weather',
      arguments: '{}',
    });
    const output = (name: string) => ({ type: 'function_call_output', call_id: name, output: name });
    const input = [
      { role: 'user', content: 'Weather?' },
      item('a'),
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Two.' }] },
      item('b'),
      output('b'),
      { role: 'user', content: 'Hurry' },
      output('a'),
    ];
    const { status, sent } = await ask(
      'responses',
      'completions',
      { input, tools: [{ type: 'function', ...weather }] },
      HELLO.completions,
    );
    expect(status).toBe(200);
    expect(sent.messages.slice(1)).toMatchObject([
      { role: 'assistant', tool_calls: [{ id: 'a' }, { id: 'b' }] },
      { role: 'tool', tool_call_id: expect.stringMatching(/^[ab]$/) },
      { role: 'tool', tool_call_id: expect.stringMatching(/^[ab]$/) },
      { role: 'user', content: 'Hurry' },
    ]);
  });
});

// anomalyco/opencode#1680, jundot/omlx#1997
test.each([
  ['mistral-large-latest', /^[A-Za-z0-9]{9}$/],
  ['mistralai/Devstral-Small-2507', /^[A-Za-z0-9]{9}$/],
  ['qwen3-coder', /^(?:toolu_01A09q90qw90lq917835lq9|D681PevKs)$/],
])('%s gets ids of tool calls that it accepts, those of other models too', async (model, allowed) => {
  const [other, own] = ['toolu_01A09q90qw90lq917835lq9', 'D681PevKs'];
  const use = (id: string) => ({ type: 'tool_use', id, name: 'weather', input: {} });
  const result = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: id });
  const request = {
    model,
    max_tokens: 50,
    tools: [{ name: 'weather', input_schema: weather.parameters }],
    messages: [
      user('Weather?'),
      { role: 'assistant', content: [use(other), use(own)] },
      user([result(other), result(own)]),
    ],
  };
  const { status, sent } = await ask('messages', 'completions', request, HELLO.completions);
  expect(status).toBe(200);
  const [, { tool_calls: calls }, ...results] = sent.messages as Loose[];
  const ids: string[] = calls.map(({ id }: Loose) => id);
  for (const id of ids) expect(id).toMatch(allowed);
  expect(ids[1]).toBe(own);
  expect(results.map(({ tool_call_id: id }) => id)).toEqual(ids);
});

// openai/codex#33551, MetaFARS/codex-relay#60: without a key of OpenAI, what Codex calls encrypted is the text.
test.each(['completions', 'messages', 'generateContent'] as const)(
  'what agents of Codex tell each other reaches %s, unless OpenAI has encrypted it',
  async (provider) => {
    const message = (text: string) => ({
      type: 'agent_message',
      id: 'amsg_1',
      author: '/root',
      recipient: '/root/list_files',
      content: [
        { type: 'input_text', text: 'Message Type: NEW_TASK' },
        { type: 'encrypted_content', encrypted_content: text },
      ],
    });
    const { status, sent } = await ask(
      'responses',
      provider,
      { input: [message('List them.')] },
      HELLO[provider],
    );
    expect(status).toBe(200);
    const turn = sent.messages?.[0] ?? sent.contents[0];
    expect(turn.role).toBe('user');
    expect(JSON.stringify(turn)).toMatch(/NEW_TASK.*List them\./);
    const encrypted = await ask('responses', provider, { input: [message('gAAAAABl0Z2')] }, HELLO[provider]);
    expect(encrypted.status).toBe(400);
    expect(encrypted.text).toContain('input[0].content[1].encrypted_content');
  },
);

describe('texts and files', () => {
  // maximhq/bifrost#3747
  test('Bedrock gets no empty texts', async () => {
    const messages = [
      user([
        { type: 'text', text: '' },
        { type: 'text', text: 'Weather?' },
      ]),
      { role: 'assistant', content: '', tool_calls: [call('call_a', 'Paris')] },
      { role: 'tool', tool_call_id: 'call_a', content: '' },
      { role: 'assistant', content: ' ' },
      user('Go on'),
    ];
    const { status, sent } = await ask('completions', 'bedrock', { messages, tools: TOOLS }, HELLO.bedrock);
    expect(status).toBe(200);
    const blank: string[] = [];
    JSON.stringify(sent.messages, (key, value: unknown) => {
      if (key === 'text' && typeof value === 'string' && value.trim() === '') blank.push(value);
      return value;
    });
    expect(blank).toEqual([]);
    expect(sent.messages.every(({ content }: Loose) => content.length > 0)).toBe(true);
    expect(sent.messages.map(({ role }: Loose) => role)).toEqual(['user', 'assistant', 'user']);
  });

  // anthropics/claude-code#24168: Bedrock refuses it ("a reserved keyword"). musistudio/claude-code-router#1220: it changes with
  // each request, so no provider would find the prompt in its cache.
  test.each(['completions', 'responses', 'generateContent', 'bedrock', 'vertex', 'messages'] as const)(
    'what Claude Code puts before its instructions for accounting reaches %s only if it is Anthropic',
    async (provider) => {
      const accounting = {
        type: 'text',
        text: 'x-anthropic-billing-header: cc_version=2.1.119.7cf; cc_entrypoint=cli; cch=15cb1;',
      };
      const system = [accounting, { type: 'text', text: 'You are Claude Code.' }];
      const request = { max_tokens: 50, messages: [user('Hi')] };
      const { status, sent } = await ask('messages', provider, { ...request, system }, HELLO[provider]);
      expect(status).toBe(200);
      expect(JSON.stringify(sent)).toContain('You are Claude Code.');
      expect(JSON.stringify(sent).includes('billing')).toBe(provider === 'messages');
      const alone = await ask('messages', provider, { ...request, system: [accounting] }, HELLO[provider]);
      expect(JSON.stringify(alone.sent).includes('billing')).toBe(provider === 'messages');
      if (provider === 'messages') return;
      expect(alone.sent).toEqual((await ask('messages', provider, request, HELLO[provider])).sent);
      const inOne = `${accounting.text}\n\nYou are Claude Code.`;
      for (const system of [inOne, [{ type: 'text', text: inOne }]]) {
        const { sent } = await ask('messages', provider, { ...request, system }, HELLO[provider]);
        expect(JSON.stringify(sent)).toContain('"You are Claude Code."');
        expect(JSON.stringify(sent)).not.toContain('billing');
      }
    },
  );

  // BerriAI/litellm#29418
  test('documents at Bedrock have different names of allowed characters', async () => {
    const source = { type: 'base64', media_type: 'application/pdf', data: PDF };
    const titled = { type: 'document', source, title: "John's #1 – résumé.pdf" };
    const messages = [
      user([{ type: 'document', source }, titled, { type: 'text', text: 'Compare' }]),
      { role: 'assistant', content: 'Done' },
      user([{ type: 'document', source }, titled, { type: 'text', text: 'Again' }]),
    ];
    const { status, sent } = await ask('messages', 'bedrock', { max_tokens: 50, messages }, HELLO.bedrock);
    expect(status).toBe(200);
    const names: string[] = sent.messages.flatMap(({ content }: Loose) =>
      content.flatMap((block: Loose) => (block.document ? [block.document.name] : [])),
    );
    expect(names).toHaveLength(4);
    expect(new Set(names).size).toBe(4);
    for (const name of names) {
      expect(name).toMatch(/^[\w\-()[\] ]{1,200}$/);
      expect(name).not.toContain('  ');
    }
  });

  // anthropics/claude-code#8184
  test.each(['messages', 'bedrock', 'generateContent'] as const)(
    'image/jpg is image/jpeg for %s',
    async (provider) => {
      const image = { type: 'image_url', image_url: { url: `data:image/jpg;base64,${PNG}` } };
      const { status, sent } = await ask(
        'completions',
        provider,
        { messages: [user([image])] },
        HELLO[provider],
      );
      expect(status).toBe(200);
      expect(JSON.stringify(sent)).not.toContain('jpg');
      expect(JSON.stringify(sent)).toContain('jpeg');
    },
  );

  // vllm-project/vllm#44000
  test.each(['completions', 'responses', 'generateContent', 'bedrock'] as const)(
    'instructions that Claude Code puts between messages reach %s',
    async (provider) => {
      const messages = [
        user([{ type: 'text', text: 'Hi' }]),
        { role: 'system', content: [{ type: 'text', text: 'Be brief.' }] },
        { role: 'assistant', content: [{ type: 'text', text: 'Yes?' }] },
        user('Go on'),
      ];
      const { status, sent } = await ask('messages', provider, { max_tokens: 50, messages }, HELLO[provider]);
      expect(status).toBe(200);
      expect(JSON.stringify(sent)).toContain('Be brief.');
    },
  );

  // lmstudio-ai/lmstudio-bug-tracker#1064
  test.each(['completions', 'messages'] as const)(
    'items without a type are messages for %s',
    async (provider) => {
      const request = {
        input: [
          { role: 'user', content: [{ type: 'input_text', text: 'Weather?' }] },
          { role: 'assistant', content: 'Where?' },
          {
            role: 'user',
            content: [
              { type: 'input_text', text: 'Here' },
              { type: 'input_image', image_url: `data:image/png;base64,${PNG}` },
            ],
          },
        ],
        instructions: '',
        store: false,
        truncation: 'disabled',
        parallel_tool_calls: true,
        user: '5c908a51-1ffe-472a-ae9b-ae88b1444e85',
        tools: [{ type: 'function', ...weather }],
      };
      const { status, sent } = await ask('responses', provider, request, HELLO[provider]);
      expect(status).toBe(200);
      expect(sent.messages.map(({ role }: Loose) => role)).toEqual(['user', 'assistant', 'user']);
      expect(sent.system ?? '').toEqual('');
    },
  );
});
