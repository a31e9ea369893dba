import { describe, expect, test } from 'vitest';
import { field, HELLO, type Loose, TOOLS, user } from './field.ts';

// Parameters that one model takes and another refuses. Each test names the report that its input is from.

const ask = field();
const hi = { messages: [user('Hi')] };

describe('sampling by Claude', () => {
  const claude = async (request: object): Promise<{ messages: Loose; converse: Loose }> => {
    const { sent: messages } = await ask('completions', 'messages', { ...hi, ...request }, HELLO.messages);
    const model = 'model' in request ? { model: `eu.anthropic.${String(request.model)}` } : {};
    const { sent } = await ask('completions', 'bedrock', { ...hi, ...request, ...model }, HELLO.bedrock);
    return { messages, converse: sent };
  };

  // RooCodeInc/Roo-Code#12162
  test.each(['claude-opus-4-7', 'claude-opus-5', 'claude-sonnet-5', 'claude-fable-5-1'])(
    '%s, which has no sampling parameters, gets none',
    async (model) => {
      const { messages, converse } = await claude({ model, temperature: 0, top_p: 0.9, top_k: 5 });
      expect(messages).toMatchObject({ model, messages: hi.messages });
      for (const member of ['temperature', 'top_p', 'top_k']) expect(messages).not.toHaveProperty(member);
      expect(converse.inferenceConfig).toBeUndefined();
      expect(converse.additionalModelRequestFields).toBeUndefined();
    },
  );

  test.each(['claude-x', 'team-claude'])(
    '%s, whose version nobody knows, gets what is asked',
    async (model) => {
      const { messages, converse } = await claude({ model, temperature: 0.5 });
      expect([messages.temperature, converse.inferenceConfig]).toEqual([0.5, { temperature: 0.5 }]);
    },
  );

  // open-webui/open-webui#17922
  test.each([
    [{ temperature: 0.2, top_p: 1 }, { temperature: 0.2 }],
    [{ temperature: 1, top_p: 0.9 }, { top_p: 0.9 }],
    [{ temperature: 0.2 }, { temperature: 0.2 }],
  ])('Claude 4.5 gets one of temperature and top_p: %j', async (request, sampling) => {
    const { messages, converse } = await claude(request);
    const { temperature, top_p } = messages;
    expect({ temperature, top_p }).toEqual({ temperature: undefined, top_p: undefined, ...sampling });
    expect(converse.inferenceConfig).toEqual('top_p' in sampling ? { topP: sampling.top_p } : sampling);
  });

  // danny-avila/LibreChat#11949
  test('with a budget of thinking, Claude gets no temperature, no top_k, and no small top_p', async () => {
    const request = { max_tokens: 8000, reasoning_effort: 'low', temperature: 0.05, top_k: 5, top_p: 0.5 };
    const { messages, converse } = await claude(request);
    expect(messages.thinking).toMatchObject({ type: 'enabled' });
    for (const member of ['temperature', 'top_p', 'top_k']) expect(messages).not.toHaveProperty(member);
    expect(converse.inferenceConfig).toEqual({ maxTokens: 8000 });
    expect(converse.additionalModelRequestFields).toEqual({ thinking: expect.anything() as unknown });
  });
});

describe('limits of tokens', () => {
  // mnfst/llm-gateway#1878, anomalyco/opencode#37964: OpenAI's reasoning models refuse `max_tokens`.
  test.each([
    ['gpt-5.1-mini', { max_tokens: 50 }, { max_completion_tokens: 50 }],
    ['o3', { max_tokens: 50, max_completion_tokens: 40 }, { max_completion_tokens: 40 }],
    ['gpt-4.1', { max_tokens: 50 }, { max_tokens: 50 }],
    ['gpt-oss-120b', { max_tokens: 50 }, { max_tokens: 50 }],
    ['llama', { max_completion_tokens: 50 }, { max_completion_tokens: 50 }],
  ])('%s gets %j of a client of the same API as %j', async (model, asked, expected) => {
    const { sent } = await ask('completions', 'completions', { ...hi, model, ...asked }, HELLO.completions);
    const { max_tokens, max_completion_tokens } = sent;
    expect({ max_tokens, max_completion_tokens }).toEqual({
      ...{ max_tokens: undefined, max_completion_tokens: undefined },
      ...expected,
    });
  });

  // BerriAI/litellm#31536
  test('a Responses provider gets the smallest maximum that it accepts', async () => {
    for (const [asked, written] of [
      [1, 16],
      [16, 16],
      [100, 100],
    ]) {
      const { sent } = await ask('messages', 'responses', { ...hi, max_tokens: asked }, HELLO.responses);
      expect(sent.max_output_tokens).toBe(written);
    }
  });
});

describe('texts that end an answer', () => {
  // MegaGrindStone/mcp-web-ui#5
  test.each([
    ['completions', 'messages'],
    ['completions', 'bedrock'],
    ['completions', 'generateContent'],
    ['messages', 'completions'],
    ['generateContent', 'messages'],
  ] as const)('an empty one of %s is left out for %s', async (client, provider) => {
    const chat =
      client === 'generateContent' ? { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] } : hi;
    const bodyWith = (stop: string[]) => ({
      ...chat,
      ...(client === 'completions' && { stop }),
      ...(client === 'messages' && { max_tokens: 50, stop_sequences: stop }),
      ...(client === 'generateContent' && { generationConfig: { stopSequences: stop } }),
    });
    const some = await ask(client, provider, bodyWith(['', 'END']), HELLO[provider]);
    const { stop, stop_sequences, inferenceConfig, generationConfig } = some.sent;
    const written = stop ?? stop_sequences ?? (inferenceConfig ?? generationConfig).stopSequences;
    expect([written].flat()).toEqual(['END']);
    const none = await ask(client, provider, bodyWith(['']), HELLO[provider]);
    expect(JSON.stringify(none.sent)).not.toContain('stop');
  });

  // BerriAI/litellm#3286
  test('Claude at Bedrock does not end at white space either', async () => {
    const claude = { ...hi, model: 'us.anthropic.claude-opus-5', stop: '\n' };
    const refused = await ask('completions', 'bedrock', claude, HELLO.bedrock);
    expect(refused).toMatchObject({ status: 400, sent: {} });
    expect(refused.text).toContain('`stop` cannot be translated');
    const nova = { ...hi, model: 'us.amazon.nova-pro-v1:0', stop: '\n' };
    const { sent } = await ask('completions', 'bedrock', nova, HELLO.bedrock);
    expect(sent.inferenceConfig).toEqual({ stopSequences: ['\n'] });
  });
});

describe('thinking by Claude', () => {
  const disabled = { thinking: { type: 'disabled' } };
  const low = { output_config: { effort: 'low' } };

  // stdapi-ai/stdapi.ai#284, weave-os/router#342, earendil-works/pi#7081: some models think unless it is turned off, some always.
  test.each([
    ['claude-haiku-4-5', disabled, undefined],
    ['claude-opus-4-8', disabled, disabled],
    ['claude-opus-5', disabled, disabled],
    ['claude-opus-5-20260724', disabled, disabled],
    ['claude-sonnet-5', disabled, disabled],
    ['claude-haiku-5-5', disabled, disabled],
    ['claude-sonnet-5-5', { thinking: { type: 'between_tools' } }, { thinking: { type: 'between_tools' } }],
    ['claude-opus-5-5', low, low],
    ['claude-opus-5.5', low, low],
    ['claude-opus-6', low, low],
    ['claude-fable-5', low, low],
    ['claude-mythos-5-1', low, low],
  ] as const)('%s without reasoning gets %j, at Bedrock %j', async (model, anthropic, bedrock) => {
    const body = { ...hi, model, reasoning_effort: 'none' };
    const { sent } = await ask('completions', 'messages', body, HELLO.messages);
    const { thinking, output_config } = sent;
    expect({ thinking, output_config }).toEqual({
      thinking: undefined,
      output_config: undefined,
      ...anthropic,
    });
    const atBedrock = { ...body, model: `us.anthropic.${model}` };
    const converse = await ask('completions', 'bedrock', atBedrock, HELLO.bedrock);
    expect(converse.sent.additionalModelRequestFields).toEqual(bedrock);
  });

  test('a client that wants thoughts between tools alone has no reasoning', async () => {
    const body = { ...hi, max_tokens: 50, thinking: { type: 'between_tools' } };
    const { sent } = await ask('messages', 'completions', body, HELLO.completions);
    expect(sent).toMatchObject({ reasoning_effort: 'none' });
    const model = 'us.anthropic.claude-sonnet-5-5';
    const converse = await ask('messages', 'bedrock', { ...body, model }, HELLO.bedrock);
    expect(converse.sent.additionalModelRequestFields).toEqual({ thinking: { type: 'between_tools' } });
  });
});

describe('thinking by Gemini', () => {
  const config = async (model: string, request: object): Promise<Loose> => {
    const { sent } = await ask(
      'messages',
      'generateContent',
      { ...hi, max_tokens: 64_000, model, ...request },
      HELLO.generateContent,
    );
    return sent.generationConfig.thinkingConfig;
  };
  const off = { thinking: { type: 'disabled' } };
  const budget = (budget_tokens: number) => ({ thinking: { type: 'enabled', budget_tokens } });

  // vercel/ai#8027
  test('thinking is turned off where it can be, and small elsewhere', async () => {
    expect(await config('gemini-2.5-flash', off)).toEqual({ thinkingBudget: 0 });
    expect(await config('gemini-2.5-pro', off)).toEqual({ thinkingBudget: 128 });
    expect(await config('gemini-3-flash-preview', off)).toEqual({ thinkingLevel: 'MINIMAL' });
    expect(await config('gemini-3.1-pro-preview', off)).toEqual({ thinkingLevel: 'LOW' });
  });

  // RooCodeInc/Roo-Code#4399
  test('a budget of thinking is one that the model has, or a level', async () => {
    expect(await config('gemini-2.5-flash', budget(31_999))).toMatchObject({ thinkingBudget: 24_576 });
    expect(await config('gemini-2.5-pro', budget(52_428))).toMatchObject({ thinkingBudget: 32_768 });
    expect(await config('gemini-2.5-pro', budget(2000))).toMatchObject({ thinkingBudget: 2000 });
    expect(await config('gemini-3-pro-preview', budget(31_999))).toMatchObject({ thinkingLevel: 'HIGH' });
    expect(await config('gemini-3-pro-preview', budget(1024))).toMatchObject({ thinkingLevel: 'LOW' });
  });
});

describe('structured outputs', () => {
  // maximhq/bifrost#1080
  test('objects of a schema are closed for Claude, which insists on it', async () => {
    const inner = { type: 'object', properties: { b: { type: 'string' } } };
    const schema = {
      type: 'object',
      properties: { a: { anyOf: [inner, { type: 'array', items: inner }] }, c: { $ref: '#/$defs/c' } },
      required: ['a'],
      $defs: { c: { type: ['object', 'null'], properties: {}, additionalProperties: false } },
    };
    const closed = { ...inner, additionalProperties: false };
    const expected = {
      ...schema,
      properties: { ...schema.properties, a: { anyOf: [closed, { type: 'array', items: closed }] } },
      additionalProperties: false,
    };
    const request = { ...hi, response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } };
    const messages = await ask('completions', 'messages', request, HELLO.messages);
    expect(messages.sent.output_config.format.schema).toEqual(expected);
    const bedrock = await ask('completions', 'bedrock', request, HELLO.bedrock);
    const { jsonSchema } = bedrock.sent.outputConfig.textFormat.structure;
    expect(JSON.parse(jsonSchema.schema)).toEqual(expected);
  });
});

describe('instructions alone', () => {
  // BerriAI/litellm#13769
  test.each(['messages', 'bedrock', 'generateContent', 'responses'] as const)(
    'instructions without a conversation are the message of the user for %s',
    async (provider) => {
      const request = { messages: [{ role: 'system', content: 'Write a poem.' }], tools: TOOLS };
      const { status, sent } = await ask('completions', provider, request, HELLO[provider]);
      expect(status).toBe(200);
      const conversation = sent.messages ?? sent.contents ?? sent.input;
      expect(conversation).toHaveLength(1);
      expect(JSON.stringify(conversation)).toContain('Write a poem.');
    },
  );
});
