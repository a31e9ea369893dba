import { EventStreamCodec } from '@smithy/core/event-streams';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ChatEvent, ChatRequest } from '../../../../src/server/llm/chat/chat.ts';
import {
  type EventSplitter,
  type Json,
  Untranslatable,
} from '../../../../src/server/llm/chat/chat-format.ts';
import { converse as format } from '../../../../src/server/llm/formats/converse/index.ts';
import { repeats } from '../../../kit/thorough.ts';

const { chat: converse } = format;

const CLAUDE = 'anthropic.claude-sonnet-4-5-20250929-v1:0';
const REQUEST: ChatRequest = {
  model: CLAUDE,
  system: [],
  turns: [{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }],
  tools: [],
  stream: false,
  streamUsage: false,
};
const MESSAGES = [{ role: 'user', content: [{ text: 'Hi' }] }];

const written = (more: Partial<ChatRequest>): Json => converse.writeRequest({ ...REQUEST, ...more });

function refused(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof Untranslatable) return error.message;
    throw error;
  }
  throw new Error('not refused');
}

const tool = { kind: 'function', name: 'weather', parameters: { type: 'object' } } as const;
const call = { type: 'toolCall', id: 'tooluse_1', name: 'weather', arguments: '{"city":"Bonn"}' } as const;

describe('requests written as Converse', () => {
  test('the model is one segment of the path', () => {
    expect(converse.path({ model: CLAUDE, stream: false })).toBe(
      '/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse',
    );
    expect(converse.path({ model: 'arn:aws:bedrock:eu-west-1::x/y', stream: true })).toBe(
      '/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A%3Ax%2Fy/converse-stream',
    );
  });

  test('instructions, parameters, metadata and the service tier have their members', () => {
    expect(
      written({
        system: [{ type: 'text', text: 'Be brief.', cache: { ttl: '1h' } }],
        maxTokens: 9,
        temperature: 0.5,
        topP: 0.9,
        topK: 4,
        stop: ['END'],
        metadata: { team: 'a' },
        serviceTier: 'flex',
        user: 'u',
      }),
    ).toEqual({
      messages: MESSAGES,
      system: [{ text: 'Be brief.' }, { cachePoint: { type: 'default', ttl: '1h' } }],
      inferenceConfig: { maxTokens: 9, temperature: 0.5, topP: 0.9, stopSequences: ['END'] },
      additionalModelRequestFields: { top_k: 4 },
      requestMetadata: { team: 'a' },
      serviceTier: { type: 'flex' },
    });
  });

  test('images and documents are sent as bytes, with unique names', () => {
    const pdf = { kind: 'data', mediaType: 'application/pdf', data: 'JVBE' } as const;
    const { messages } = written({
      turns: [
        {
          role: 'user',
          parts: [
            { type: 'image', source: { kind: 'data', mediaType: 'image/png', data: 'iVBO' } },
            { type: 'file', source: pdf, name: 'Q3/report_1.pdf' },
            { type: 'file', source: pdf, name: 'Q3/report_1.pdf' },
            { type: 'file', source: { kind: 'text', text: 'Notes' }, cache: {} },
          ],
        },
      ],
    });
    expect(messages).toEqual([
      {
        role: 'user',
        content: [
          { image: { format: 'png', source: { bytes: 'iVBO' } } },
          { document: { format: 'pdf', name: 'Q3-report-1-pdf', source: { bytes: 'JVBE' } } },
          { document: { format: 'pdf', name: 'Q3-report-1-pdf (2)', source: { bytes: 'JVBE' } } },
          { document: { format: 'txt', name: 'document', source: { text: 'Notes' } } },
          { cachePoint: { type: 'default' } },
          { text: 'Q3-report-1-pdf' },
        ],
      },
    ]);
  });

  test('tools, calls and results keep their ids; neighbouring turns of one author are one message', () => {
    const foreign = { ...call, id: `call_1__sig_${'x'.repeat(80)}` };
    const result = (callId: string, isError: boolean) =>
      ({
        type: 'toolResult',
        callId,
        parts: [{ type: 'text', text: '9 °C' }],
        ...(isError && { isError }),
      }) as const;
    const body = written({
      tools: [tool, { kind: 'custom', name: 'shell' }],
      toolChoice: { mode: 'auto' },
      turns: [
        ...REQUEST.turns,
        { role: 'assistant', parts: [call, foreign] },
        { role: 'user', parts: [result('tooluse_1', false)] },
        { role: 'user', parts: [result(foreign.id, true)] },
      ],
    });
    const id = expect.stringMatching(/^call_[\w-]{43}$/) as unknown;
    expect(body).toEqual({
      messages: [
        ...MESSAGES,
        {
          role: 'assistant',
          content: [
            { toolUse: { toolUseId: 'tooluse_1', name: 'weather', input: { city: 'Bonn' } } },
            { toolUse: { toolUseId: id, name: 'weather', input: { city: 'Bonn' } } },
          ],
        },
        {
          role: 'user',
          content: [
            { toolResult: { toolUseId: 'tooluse_1', content: [{ text: '9 °C' }] } },
            { toolResult: { toolUseId: id, content: [{ text: '9 °C' }], status: 'error' } },
          ],
        },
      ],
      toolConfig: {
        tools: [
          { toolSpec: { name: 'weather', inputSchema: { json: { type: 'object', properties: {} } } } },
          {
            toolSpec: {
              name: 'shell',
              inputSchema: { json: expect.objectContaining({ required: ['input'] }) as unknown },
            },
          },
        ],
        toolChoice: { auto: {} },
      },
    });
  });

  test.each([
    [{ mode: 'required' }, ['a', 'b'], { any: {} }],
    [{ mode: 'tool', name: 'a' }, ['a', 'b'], { tool: { name: 'a' } }],
    [{ mode: 'allowed', names: ['b'], isRequired: true }, ['b'], { any: {} }],
    [{ mode: 'allowed', names: ['b'], isRequired: false }, ['b'], { auto: {} }],
  ] as const)('the tool choice %j offers %j', (toolChoice, offered, choice) => {
    const tools = [
      { ...tool, name: 'a' },
      { ...tool, name: 'b' },
    ];
    const config = written({ tools, toolChoice })['toolConfig'] as {
      tools: { toolSpec: { name: string } }[];
    };
    expect(config.tools.map(({ toolSpec }) => toolSpec.name)).toEqual(offered);
    expect(config).toMatchObject({ toolChoice: choice });
  });

  test('no tools are offered if none may be called', () => {
    expect(written({ tools: [tool], toolChoice: { mode: 'none' } })).toEqual({ messages: MESSAGES });
  });

  test.each([
    [CLAUDE, { effort: 'medium' }, { thinking: { type: 'enabled', budget_tokens: 4096 } }],
    [CLAUDE, { budgetTokens: 2000 }, { thinking: { type: 'enabled', budget_tokens: 2000 } }],
    [CLAUDE, { effort: 'none' }, undefined],
    [
      'eu.anthropic.claude-opus-4-7',
      { effort: 'high' },
      { thinking: { type: 'adaptive' }, output_config: { effort: 'high' } },
    ],
    [
      'amazon.nova-2-lite-v1:0',
      { effort: 'xhigh' },
      { reasoningConfig: { type: 'enabled', maxReasoningEffort: 'high' } },
    ],
    ['openai.gpt-oss-120b-1:0', { effort: 'low' }, { reasoning_effort: 'low' }],
  ] as const)('for %s, the reasoning %j becomes %j', (model, reasoning, fields) => {
    expect(written({ model, reasoning })['additionalModelRequestFields']).toEqual(fields);
  });

  test('only reasoning that Bedrock signed or encrypted is sent back', () => {
    const { messages } = written({
      turns: [
        {
          role: 'assistant',
          parts: [
            { type: 'reasoning', text: 'Hm.', signature: 'c2ln', origin: 'converse' },
            { type: 'reasoning', text: '', encrypted: 'ZW5j', origin: 'converse' },
            { type: 'reasoning', text: 'Of Gemini', signature: 'x', origin: 'generateContent' },
            { type: 'reasoning', text: 'Of anyone' },
            { type: 'text', text: 'Hello.' },
          ],
        },
      ],
    });
    expect(messages).toEqual([
      {
        role: 'assistant',
        content: [
          { reasoningContent: { reasoningText: { text: 'Hm.', signature: 'c2ln' } } },
          { reasoningContent: { redactedContent: 'ZW5j' } },
          { text: 'Hello.' },
        ],
      },
    ]);
  });

  test('a JSON schema becomes outputConfig', () => {
    const schema = { type: 'object', additionalProperties: false };
    expect(written({ output: { type: 'schema', name: 'x', schema } })['outputConfig']).toEqual({
      textFormat: {
        type: 'json_schema',
        structure: { jsonSchema: { name: 'x', schema: JSON.stringify(schema) } },
      },
    });
  });

  test.each([
    [{ seed: 1 }, 'seed'],
    [{ count: 2 }, 'count'],
    [{ presencePenalty: 1 }, 'presencePenalty'],
    [{ frequencyPenalty: 1 }, 'frequencyPenalty'],
    [{ logitBias: {} }, 'logitBias'],
    [{ logprobs: {} }, 'logprobs'],
    [{ parallelToolCalls: false, tools: [tool] }, 'parallelToolCalls'],
    [{ output: { type: 'json' } }, 'json: Converse needs a JSON Schema'],
    [{ model: 'mistral.x', topK: 1 }, 'topK'],
    [{ model: 'mistral.x', reasoning: { effort: 'low' } }, 'reasoning'],
    [{ serviceTier: 'scale' }, 'serviceTier'],
    [
      { turns: [{ role: 'user', parts: [{ type: 'image', source: { kind: 'url', url: 'https://x' } }] }] },
      'image: Bedrock needs the data of an image',
    ],
    [
      {
        turns: [
          {
            role: 'user',
            parts: [{ type: 'image', source: { kind: 'data', mediaType: 'image/tiff', data: '' } }],
          },
        ],
      },
      'image: Bedrock reads no images of type image/tiff',
    ],
    [
      { turns: [{ role: 'user', parts: [{ type: 'audio', format: 'wav', data: '' }] }] },
      'audio: Converse has no audio',
    ],
  ] as const)('what Converse cannot express is refused by name: %j', (more, name) => {
    expect(refused(() => written(more as Partial<ChatRequest>))).toContain(name);
  });
});

const USAGE = {
  inputTokens: 100,
  outputTokens: 20,
  totalTokens: 170,
  cacheReadInputTokens: 40,
  cacheWriteInputTokens: 10,
};

describe('responses read from Converse', () => {
  test('texts, reasoning, calls and all token classes are read', () => {
    const response = converse.readResponse({
      output: {
        message: {
          role: 'assistant',
          content: [
            { reasoningContent: { reasoningText: { text: 'Hm.', signature: 'c2ln' } } },
            { reasoningContent: { redactedContent: 'ZW5j' } },
            { text: 'One moment.' },
            { toolUse: { toolUseId: 'tooluse_1', name: 'weather', input: { city: 'Bonn' } } },
          ],
        },
      },
      stopReason: 'tool_use',
      // BerriAI/litellm#29432
      usage: {
        ...USAGE,
        cacheDetails: [
          { ttl: '1h', inputTokens: 4 },
          { ttl: '5m', inputTokens: 6 },
        ],
      },
      metrics: { latencyMs: 900 },
    });
    expect(response).toEqual({
      id: expect.stringMatching(/^msg_\w{32}$/) as unknown,
      model: '',
      answers: [
        {
          parts: [
            { type: 'reasoning', text: 'Hm.', signature: 'c2ln', origin: 'converse' },
            { type: 'reasoning', text: '', encrypted: 'ZW5j', origin: 'converse' },
            { type: 'text', text: 'One moment.' },
            call,
          ],
          stop: 'toolCalls',
        },
      ],
      usage: { input: 150, output: 20, cachedInput: 40, cacheWrite: 10, cacheWrite1h: 4 },
    });
  });

  test.each([
    ['end_turn', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['stop_sequence', 'stopSequence'],
    ['guardrail_intervened', 'filter'],
    ['content_filtered', 'filter'],
  ])('the stop reason %s is read as %s', (stopReason, stop) => {
    const response = converse.readResponse({ output: { message: { content: [] } }, stopReason });
    expect(response.answers[0]?.stop).toBe(stop);
  });

  test.each([
    [{ output: { message: { content: [] } }, stopReason: 'malformed_tool_use' }, 'malformed_tool_use'],
    [
      { output: { message: { content: [{ video: { format: 'mp4' } }] } }, stopReason: 'end_turn' },
      'content[].video',
    ],
    [{}, 'output.message.content'],
  ])('a response without a usable answer is refused: %j', (body, name) => {
    expect(refused(() => converse.readResponse(body))).toContain(name);
  });

  test('an error has its message, in either spelling', () => {
    expect(converse.readError({ message: 'Slow down.' }, 429)).toEqual({
      message: 'Slow down.',
      status: 429,
    });
    expect(converse.readError({ Message: 'No.', __type: 'com.amazon.coral#AccessDenied' }, 403)).toEqual({
      message: 'No.',
      status: 403,
    });
    expect(converse.readError({ message: 'Input is too long for requested model.' }, 400)).toMatchObject({
      code: 'context_length_exceeded',
    });
    expect(converse.readError('<html>', 503)).toMatchObject({ status: 503 });
  });
});

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes as Uint8Array).toString('utf8'),
  (text) => Buffer.from(text, 'utf8'),
);

/** A message as Bedrock sends it. */
function message(type: string, body: object, kind: 'event' | 'exception' = 'event'): Buffer {
  const text = (value: string) => ({ type: 'string', value }) as const;
  return Buffer.from(
    codec.encode({
      headers: {
        [`:${kind}-type`]: text(type),
        ':content-type': text('application/json'),
        ':message-type': text(kind),
      },
      body: Buffer.from(JSON.stringify(body)),
    }),
  );
}

const splitter = (maxBytes = 100_000): EventSplitter => {
  const { framing } = converse;
  if (framing === undefined) throw new Error('no framing');
  return framing.splitter(maxBytes);
};

/** Events of a stream of these bytes, which arrive in chunks of `size`. */
function streamed(bytes: Buffer, size = bytes.length): ChatEvent[] {
  const reader = converse.eventReader();
  const split = splitter();
  const events: ChatEvent[] = [];
  for (let at = 0; at < bytes.length; at += size)
    for (const { data, type } of split.push(bytes.subarray(at, at + size)))
      events.push(...reader.read(data, type));
  for (const { data, type } of split.end()) events.push(...reader.read(data, type));
  return [...events, ...reader.end()];
}

const STREAM = Buffer.concat([
  message('messageStart', { role: 'assistant', p: 'abcd' }),
  message('contentBlockDelta', { contentBlockIndex: 0, delta: { reasoningContent: { text: 'Hm' } } }),
  message('contentBlockDelta', { contentBlockIndex: 0, delta: { reasoningContent: { signature: 'c2ln' } } }),
  message('contentBlockStop', { contentBlockIndex: 0 }),
  message('contentBlockDelta', { contentBlockIndex: 1, delta: { text: 'Grüß' } }),
  message('contentBlockDelta', { contentBlockIndex: 1, delta: { text: ' Gott.' } }),
  message('contentBlockStop', { contentBlockIndex: 1 }),
  message('contentBlockStart', {
    contentBlockIndex: 2,
    start: { toolUse: { toolUseId: 'tooluse_1', name: 'weather' } },
  }),
  message('contentBlockDelta', { contentBlockIndex: 2, delta: { toolUse: { input: '{"city":' } } }),
  message('contentBlockDelta', { contentBlockIndex: 2, delta: { toolUse: { input: '"Bonn"}' } } }),
  message('contentBlockStop', { contentBlockIndex: 2 }),
  message('messageStop', { stopReason: 'tool_use' }),
  message('metadata', { usage: USAGE, metrics: { latencyMs: 900 } }),
]);

const EVENTS = [
  { type: 'start', id: expect.stringMatching(/^msg_/) as unknown, model: '' },
  { type: 'partStart', part: 0, answer: 0, content: { type: 'reasoning', origin: 'converse' } },
  { type: 'delta', part: 0, text: 'Hm' },
  { type: 'signature', part: 0, signature: 'c2ln' },
  { type: 'partEnd', part: 0 },
  { type: 'partStart', part: 1, answer: 0, content: { type: 'text' } },
  { type: 'delta', part: 1, text: 'Grüß' },
  { type: 'delta', part: 1, text: ' Gott.' },
  { type: 'partEnd', part: 1 },
  { type: 'partStart', part: 2, answer: 0, content: { type: 'toolCall', id: 'tooluse_1', name: 'weather' } },
  { type: 'delta', part: 2, text: '{"city":' },
  { type: 'delta', part: 2, text: '"Bonn"}' },
  { type: 'partEnd', part: 2 },
  { type: 'answerEnd', answer: 0, stop: 'toolCalls' },
  { type: 'end', usage: { input: 150, output: 20, cachedInput: 40, cacheWrite: 10 } },
];

describe('streams read from ConverseStream', () => {
  test.each([STREAM.length, 1, 7, 100])('the events are the same in chunks of %i bytes', (size) => {
    expect(streamed(STREAM, size)).toEqual(EVENTS);
  });

  test('a stream that is cut off has no end', () => {
    expect(streamed(STREAM.subarray(0, STREAM.length / 2)).some(({ type }) => type === 'end')).toBe(false);
  });

  test('an exception is the last event, with its status and name', () => {
    const start = message('messageStart', { role: 'assistant' });
    const exception = message('throttlingException', { message: 'Slow down.' }, 'exception');
    expect(streamed(Buffer.concat([start, exception])).slice(1)).toEqual([
      { type: 'error', error: { message: 'Slow down.', status: 429, code: 'throttlingException' } },
    ]);
  });

  test('a damaged message and one over the limit are errors', () => {
    const damaged = Buffer.from(STREAM);
    damaged[30] = (damaged[30] as number) ^ 1;
    expect(() => splitter().push(damaged)).toThrow(/checksum/);
    expect(() => splitter(64).push(STREAM)).toThrow('an event of the stream is too long');
    expect(() => splitter().push(Buffer.alloc(12))).toThrow('an event of the stream is too long');
  });
});

describe('Converse of anything', () => {
  const names = [
    ...[
      'output',
      'message',
      'content',
      'text',
      'toolUse',
      'toolUseId',
      'name',
      'input',
      'stopReason',
      'usage',
    ],
    ...['reasoningContent', 'reasoningText', 'signature', 'redactedContent', 'inputTokens', 'delta', 'start'],
    ...['contentBlockIndex', 'Message', '__type'],
  ];
  const types = [
    ...[
      'messageStart',
      'contentBlockStart',
      'contentBlockDelta',
      'contentBlockStop',
      'messageStop',
      'metadata',
    ],
    ...['exception:throttlingException', 'exception:', 'later'],
  ];
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom(null, '', 'end_turn', 'tool_use', 0, 1, -1, 1.5, true),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...names), tie('value'), { maxKeys: 5 }),
    ),
  }));
  const body = fc.dictionary(fc.constantFrom(...names), value, { maxKeys: 6 });
  const orRefused = (action: () => unknown): void => {
    try {
      action();
    } catch (error) {
      if (!(error instanceof Untranslatable)) throw error;
    }
  };

  test('responses, errors and events of any JSON are read or refused', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom(...types), body), { maxLength: 6 }),
        body,
        (sent, whole) => {
          orRefused(() => converse.readResponse(whole as Json));
          converse.readError(whole, 500);
          const reader = converse.eventReader();
          orRefused(() => {
            for (const [type, data] of sent) reader.read(JSON.stringify(data), type);
            reader.end();
          });
        },
      ),
      { numRuns: repeats(800, 10_000) },
    );
  });

  test('streams of any bytes are read or end with an error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(STREAM.length), (bytes, at) => {
        const damaged = Buffer.concat([STREAM.subarray(0, at), bytes, STREAM.subarray(at)]);
        try {
          streamed(damaged, 50);
        } catch (error) {
          expect(error).toBeInstanceOf(Error);
        }
      }),
      { numRuns: repeats(200, 2_000) },
    );
  });
});
