import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ChatEvent, ChatRequest, ChatResponse } from '../../../../src/server/llm/chat/chat.ts';
import { type Json, Untranslatable } from '../../../../src/server/llm/chat/chat-format.ts';
import { generateContent as format } from '../../../../src/server/llm/formats/generate-content/index.ts';
import { repeats } from '../../../kit/thorough.ts';

const { chat: generateContent } = format;

const REQUEST: ChatRequest = {
  model: 'gemini-2.5-flash',
  system: [],
  turns: [{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }],
  tools: [],
  stream: false,
  streamUsage: false,
};
const CONTENTS = [{ role: 'user', parts: [{ text: 'Hi' }] }];
const TARGET = { model: 'gemini-2.5-flash', stream: false };

const written = (more: Partial<ChatRequest>): Json => generateContent.writeRequest({ ...REQUEST, ...more });
const read = (body: Json): ChatRequest =>
  generateContent.readRequest({ contents: CONTENTS, ...body }, TARGET);

function refused(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof Untranslatable) return error.message;
    throw error;
  }
  throw new Error('not refused');
}

/** Events of a stream whose events have these bodies. */
function events(...bodies: readonly object[]): ChatEvent[] {
  const reader = generateContent.eventReader();
  return [...bodies.flatMap((body) => reader.read(JSON.stringify(body))), ...reader.end()];
}

/** Bodies of the events that a stream is written as. */
function bodies(list: readonly ChatEvent[]): unknown[] {
  const writer = generateContent.eventWriter(REQUEST);
  return list
    .map((event) => writer.write(event))
    .join('')
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: '))
    .map((frame) => JSON.parse(frame.slice('data: '.length)) as unknown);
}

describe('the path of generateContent', () => {
  test.each([
    ['gemini-2.5-flash', false, '/models/gemini-2.5-flash:generateContent'],
    ['models/gemini-2.5-flash', true, '/models/gemini-2.5-flash:streamGenerateContent?alt=sse'],
    ['tunedModels/mine', false, '/tunedModels/mine:generateContent'],
    ['../files/x', false, '/models/..%2Ffiles%2Fx:generateContent'],
  ])('the model %j is one segment of the path (stream: %s)', (model, stream, path) => {
    expect(generateContent.path({ model, stream })).toBe(path);
  });
});

describe('requests written as generateContent', () => {
  test('sampling parameters, stop sequences and the number of answers become generationConfig', () => {
    expect(
      written({
        maxTokens: 9,
        temperature: 0.5,
        topP: 0.9,
        topK: 4,
        stop: ['END'],
        presencePenalty: 0.1,
        frequencyPenalty: 0.2,
        seed: 7,
        count: 2,
      }),
    ).toEqual({
      contents: CONTENTS,
      generationConfig: {
        maxOutputTokens: 9,
        temperature: 0.5,
        topP: 0.9,
        topK: 4,
        stopSequences: ['END'],
        presencePenalty: 0.1,
        frequencyPenalty: 0.2,
        seed: 7,
        candidateCount: 2,
      },
    });
  });

  test('instructions become systemInstruction, and those in the middle of a conversation a marked text in their place', () => {
    const system = [{ type: 'text' as const, text: 'Be brief.' }];
    const turns = [
      ...REQUEST.turns,
      { role: 'system' as const, parts: [{ type: 'text' as const, text: 'Rhyme.' }] },
    ];
    expect(written({ system, turns })).toEqual({
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
      contents: [{ role: 'user', parts: [{ text: 'Hi' }, { text: '<system>\nRhyme.\n</system>' }] }],
    });
  });

  test('results of parallel tool calls are in one content, with the names and ids of their calls and the signature of the first', () => {
    const call = (id: string, city: string) =>
      ({ type: 'toolCall', id, name: 'weather', arguments: JSON.stringify({ city }) }) as const;
    const result = (callId: string, text: string, isError?: boolean) =>
      ({
        role: 'user',
        parts: [{ type: 'toolResult', callId, parts: [{ type: 'text', text }], ...(isError && { isError }) }],
      }) as const;
    const signed = `call_1__sig_${Buffer.from('signature').toString('base64url')}`;
    const { contents } = written({
      turns: [
        ...REQUEST.turns,
        { role: 'assistant', parts: [call(signed, 'Bonn'), call('call_2', 'Rome')] },
        result(signed, '9 °C'),
        result('call_2', 'no such city', true),
      ],
    });
    expect(contents).toEqual([
      ...CONTENTS,
      {
        role: 'model',
        parts: [
          {
            functionCall: { id: 'call_1', name: 'weather', args: { city: 'Bonn' } },
            thoughtSignature: Buffer.from('signature').toString('base64'),
          },
          { functionCall: { id: 'call_2', name: 'weather', args: { city: 'Rome' } } },
        ],
      },
      {
        role: 'user',
        parts: [
          { functionResponse: { id: 'call_1', name: 'weather', response: { output: '9 °C' } } },
          { functionResponse: { id: 'call_2', name: 'weather', response: { error: 'no such city' } } },
        ],
      },
    ]);
  });

  test('images, recordings and documents become inlineData or fileData', () => {
    const data = { kind: 'data', mediaType: 'image/png', data: 'iVBO' } as const;
    const { contents } = written({
      turns: [
        {
          role: 'user',
          parts: [
            { type: 'image', source: data },
            { type: 'image', source: { kind: 'url', url: 'https://example.com/a.JPG?x=1' } },
            { type: 'audio', format: 'wav', data: 'UklG' },
            { type: 'file', source: { kind: 'text', text: 'Report' } },
            { type: 'file', source: { kind: 'id', id: 'gs://bucket/a.pdf' } },
          ],
        },
      ],
    });
    expect(contents).toEqual([
      {
        role: 'user',
        parts: [
          { inlineData: { mimeType: 'image/png', data: 'iVBO' } },
          { fileData: { fileUri: 'https://example.com/a.JPG?x=1', mimeType: 'image/jpeg' } },
          { inlineData: { mimeType: 'audio/wav', data: 'UklG' } },
          { inlineData: { mimeType: 'text/plain', data: Buffer.from('Report').toString('base64') } },
          { fileData: { fileUri: 'gs://bucket/a.pdf', mimeType: 'application/pdf' } },
        ],
      },
    ]);
  });

  const parameters = { type: 'object', properties: { city: { type: 'string' } } };
  test('tools become functionDeclarations, and a custom tool a function with one argument', () => {
    const { tools } = written({
      tools: [
        { kind: 'function', name: 'weather', description: 'Now', parameters, strict: true },
        { kind: 'custom', name: 'shell' },
      ],
    });
    expect(tools).toEqual([
      {
        functionDeclarations: [
          { name: 'weather', description: 'Now', parametersJsonSchema: parameters },
          {
            name: 'shell',
            parametersJsonSchema: expect.objectContaining({ required: ['input'] }) as unknown,
          },
        ],
      },
    ]);
  });

  test.each([
    [{ mode: 'auto' }, { mode: 'AUTO' }],
    [{ mode: 'none' }, { mode: 'NONE' }],
    [{ mode: 'required' }, { mode: 'ANY' }],
    [
      { mode: 'tool', name: 'a' },
      { mode: 'ANY', allowedFunctionNames: ['a'] },
    ],
    [
      { mode: 'allowed', names: ['a', 'b'], isRequired: true },
      { mode: 'ANY', allowedFunctionNames: ['a', 'b'] },
    ],
    [
      { mode: 'allowed', names: ['a'], isRequired: false },
      { mode: 'VALIDATED', allowedFunctionNames: ['a'] },
    ],
  ] as const)('the tool choice %j becomes %j', (toolChoice, functionCallingConfig) => {
    expect(written({ toolChoice, tools: [{ kind: 'function', name: 'a' }] })['toolConfig']).toEqual({
      functionCallingConfig,
    });
  });

  test.each([
    ['gemini-2.5-pro', { effort: 'low' }, { thinkingBudget: 1024 }],
    ['gemini-2.5-pro', { effort: 'none' }, { thinkingBudget: 128 }],
    ['gemini-2.5-pro', { budgetTokens: 500 }, { thinkingBudget: 500, includeThoughts: true }],
    [
      'gemini-3-pro',
      { effort: 'medium', summary: 'auto' },
      { thinkingLevel: 'MEDIUM', includeThoughts: true },
    ],
    ['gemini-3-pro', { effort: 'max' }, { thinkingLevel: 'HIGH' }],
    ['gemini-3-pro', { summary: 'auto' }, { includeThoughts: true }],
  ] as const)('for %s, the reasoning %j becomes %j', (model, reasoning, thinkingConfig) => {
    expect(written({ model, reasoning })['generationConfig']).toEqual({ thinkingConfig });
  });

  test('JSON output becomes a media type, with the schema if there is one', () => {
    const schema = { type: 'object' };
    expect(written({ output: { type: 'json' } })['generationConfig']).toEqual({
      responseMimeType: 'application/json',
    });
    expect(
      written({ output: { type: 'schema', schema, name: 'x', strict: true } })['generationConfig'],
    ).toEqual({
      responseMimeType: 'application/json',
      responseJsonSchema: schema,
    });
  });

  test.each([
    [{ logprobs: {} }, 'logprobs'],
    [{ logitBias: { 1: 2 } }, 'logitBias'],
    [{ parallelToolCalls: false, tools: [{ kind: 'function', name: 'f' }] }, 'parallelToolCalls'],
    [{ serviceTier: 'scale' }, 'serviceTier'],
    [{ turns: [{ role: 'user', name: 'Ann', parts: [] }] }, 'messages.name'],
    [
      { turns: [{ role: 'user', parts: [{ type: 'file', source: { kind: 'id', id: 'file-1' } }] }] },
      'file: it is a file of another provider',
    ],
    [
      { turns: [{ role: 'user', parts: [{ type: 'toolResult', callId: 'x', parts: [] }] }] },
      'toolResult: its call is not in the conversation',
    ],
    [
      { turns: [{ role: 'assistant', parts: [{ type: 'toolCall', id: '1', name: 'f', arguments: '[1]' }] }] },
      'toolCall: the arguments are not the JSON text of an object',
    ],
  ] as const)('what Gemini cannot express is refused by name: %j', (more, name) => {
    expect(refused(() => written(more as Partial<ChatRequest>))).toContain(name);
  });
});

describe('requests read from generateContent', () => {
  test('every member of a request is read, in camel case and in snake case', () => {
    const camel = {
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
      contents: [{ parts: [{ text: 'Hi' }, { inlineData: { mimeType: 'image/PNG', data: 'iVBO' } }] }],
      tools: [
        {
          functionDeclarations: [
            {
              name: 'weather',
              parameters: {
                type: 'OBJECT',
                properties: { city_name: { type: 'STRING', nullable: true, maxLength: '9' } },
                propertyOrdering: ['city_name'],
              },
            },
          ],
        },
      ],
      toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['weather'] } },
      generationConfig: {
        maxOutputTokens: 9,
        stopSequences: ['END'],
        responseMimeType: 'application/json',
        responseSchema: { type: 'ARRAY', items: { type: 'INTEGER' } },
        thinkingConfig: { thinkingBudget: 64, includeThoughts: true },
        candidateCount: 1,
      },
      safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }],
      labels: { teamName: 'a' },
    };
    const snake = JSON.parse(
      JSON.stringify(camel).replaceAll(
        /"(systemInstruction|inlineData|mimeType|functionDeclarations|toolConfig|functionCallingConfig|allowedFunctionNames|generationConfig|maxOutputTokens|stopSequences|responseMimeType|responseSchema|thinkingConfig|thinkingBudget|includeThoughts|candidateCount|safetySettings)":/g,
        (_, name: string) => `"${name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}":`,
      ),
    ) as Json;
    const expected: ChatRequest = {
      model: 'gemini-2.5-flash',
      stream: false,
      streamUsage: true,
      system: [{ type: 'text', text: 'Be brief.' }],
      turns: [
        {
          role: 'user',
          parts: [
            { type: 'text', text: 'Hi' },
            { type: 'image', source: { kind: 'data', mediaType: 'image/png', data: 'iVBO' } },
          ],
        },
      ],
      tools: [
        {
          kind: 'function',
          name: 'weather',
          parameters: {
            type: 'object',
            properties: { city_name: { type: ['string', 'null'], maxLength: 9 } },
          },
        },
      ],
      toolChoice: { mode: 'tool', name: 'weather' },
      maxTokens: 9,
      stop: ['END'],
      output: { type: 'schema', schema: { type: 'array', items: { type: 'integer' } } },
      reasoning: { budgetTokens: 64, summary: 'auto' },
      metadata: { teamName: 'a' },
    };
    expect(snake).not.toEqual(camel);
    expect(generateContent.readRequest(camel, TARGET)).toEqual(expected);
    expect(generateContent.readRequest(snake, TARGET)).toEqual(expected);
  });

  test('an answer that a client collected from the events of a stream is one turn', () => {
    const content = (text: string): object => ({ role: 'model', parts: [{ text }] });
    const { turns } = read({ contents: [...CONTENTS, content('Hel'), content('lo.'), ...CONTENTS] });
    expect(turns[1]).toEqual({ role: 'assistant', parts: [{ type: 'text', text: 'Hello.' }] });
  });

  test('results without ids belong to the open calls of their function, in order', () => {
    const call = (city: string) => ({ functionCall: { name: 'weather', args: { city } } });
    const result = (output: unknown) => ({ functionResponse: { name: 'weather', response: { output } } });
    const { turns } = read({
      contents: [
        { role: 'model', parts: [call('Bonn'), call('Rome')] },
        { role: 'function', parts: [result('9'), result({ degrees: 20 })] },
      ],
    });
    expect(turns).toEqual([
      {
        role: 'assistant',
        parts: [
          { type: 'toolCall', id: 'call_1', name: 'weather', arguments: '{"city":"Bonn"}' },
          { type: 'toolCall', id: 'call_2', name: 'weather', arguments: '{"city":"Rome"}' },
        ],
      },
      {
        role: 'user',
        parts: [
          { type: 'toolResult', callId: 'call_1', parts: [{ type: 'text', text: '9' }] },
          { type: 'toolResult', callId: 'call_2', parts: [{ type: 'text', text: '{"degrees":20}' }] },
        ],
      },
    ]);
  });

  test.each([
    [{ cachedContent: 'cachedContents/1' }, 'cachedContent'],
    [{ tools: [{ googleSearch: {} }] }, 'tools[0].googleSearch'],
    [{ generationConfig: { speechConfig: {} } }, 'generationConfig.speechConfig'],
    [{ generationConfig: { responseModalities: ['IMAGE'] } }, 'generationConfig.responseModalities'],
    [
      { safetySettings: [{ threshold: 'BLOCK_LOW_AND_ABOVE' }] },
      'safetySettings[0].threshold: "BLOCK_LOW_AND_ABOVE"',
    ],
    [{ contents: [{ parts: [{ executableCode: { code: '1' } }] }] }, 'contents[0].parts[0].executableCode'],
    [
      { contents: [{ parts: [{ functionResponse: { name: 'f' } }] }] },
      'contents[0].parts[0].functionResponse.name: "f"',
    ],
    [{ contents: [{ role: 'system', parts: [] }] }, 'contents[0].role: "system"'],
    [{ systemInstruction: {}, system_instruction: {} }, 'system_instruction'],
  ])('a member that has no equivalent is refused by its path: %j', (body, path) => {
    expect(refused(() => read(body))).toContain(path);
  });
});

const ANSWER = {
  candidates: [
    {
      content: {
        role: 'model',
        parts: [
          { text: 'Looking for it.', thought: true },
          { text: 'One moment' },
          { text: ' please.' },
          { functionCall: { id: 'fc-1', name: 'weather', args: { city: 'Bonn' } }, thoughtSignature: 'c2ln' },
        ],
      },
      finishReason: 'STOP',
      index: 0,
    },
  ],
  usageMetadata: {
    promptTokenCount: 100,
    cachedContentTokenCount: 40,
    toolUsePromptTokenCount: 5,
    candidatesTokenCount: 20,
    thoughtsTokenCount: 30,
    totalTokenCount: 155,
    promptTokensDetails: [
      { modality: 'TEXT', tokenCount: 90 },
      { modality: 'AUDIO', tokenCount: 10 },
    ],
  },
  modelVersion: 'gemini-2.5-flash-001',
  responseId: 'resp-1',
};
const USAGE = { input: 105, output: 50, cachedInput: 40, inputAudio: 10, reasoning: 30 };

describe('responses read from generateContent', () => {
  test('thoughts, texts, calls with their signature, and all token classes are read', () => {
    expect(generateContent.readResponse(ANSWER)).toEqual({
      id: 'resp-1',
      model: 'gemini-2.5-flash-001',
      answers: [
        {
          parts: [
            { type: 'reasoning', text: 'Looking for it.', isSummary: true, origin: 'generateContent' },
            { type: 'text', text: 'One moment please.' },
            {
              type: 'toolCall',
              id: `fc-1__sig_${Buffer.from('sig').toString('base64url')}`,
              name: 'weather',
              arguments: '{"city":"Bonn"}',
            },
          ],
          stop: 'toolCalls',
        },
      ],
      usage: USAGE,
    });
  });

  test('a blocked prompt is an empty answer that a filter stopped', () => {
    expect(generateContent.readResponse({ promptFeedback: { blockReason: 'SAFETY' } }).answers).toEqual([
      { parts: [], stop: 'filter' },
    ]);
  });

  test.each([
    ['STOP', 'stop'],
    ['MAX_TOKENS', 'length'],
    ['SAFETY', 'filter'],
    ['RECITATION', 'filter'],
    ['PROHIBITED_CONTENT', 'filter'],
  ])('the finish reason %s is read as %s', (finishReason, stop) => {
    const { answers } = generateContent.readResponse({ candidates: [{ finishReason }] });
    expect(answers).toEqual([{ parts: [], stop }]);
  });

  test.each([
    [{ candidates: [{ finishReason: 'MALFORMED_FUNCTION_CALL' }] }, 'MALFORMED_FUNCTION_CALL'],
    [{ candidates: [{ content: { parts: [{ executableCode: { code: '1' } }] } }] }, 'executableCode'],
    [
      { candidates: [{ content: { parts: [{ functionCall: { name: 'f', willContinue: true } }] } }] },
      'functionCall.partialArgs',
    ],
    [{}, 'candidates'],
  ])('a response without a usable answer is refused: %j', (body, name) => {
    expect(refused(() => generateContent.readResponse(body))).toContain(name);
  });

  test('errors are read from an object and from a list, and written with the name of their status', () => {
    const error = { error: { code: 429, message: 'Slow down.', status: 'RESOURCE_EXHAUSTED' } };
    const expected = { message: 'Slow down.', status: 429, code: 'RESOURCE_EXHAUSTED' };
    expect(generateContent.readError(error, 429)).toEqual(expected);
    expect(generateContent.readError([error], 429)).toEqual(expected);
    expect(generateContent.writeError({ message: 'Slow down.', status: 429, code: 'rate_limit' })).toEqual(
      error,
    );
    expect(generateContent.readError('<html>', 503)).toMatchObject({ status: 503 });
    const tooLong = 'The input token count (9) exceeds the maximum number of tokens allowed (8).';
    expect(generateContent.readError({ error: { code: 400, message: tooLong } }, 400)).toMatchObject({
      code: 'context_length_exceeded',
    });
  });
});

describe('responses written as generateContent', () => {
  const response: ChatResponse = {
    id: 'resp-1',
    model: 'other-1',
    created: 1_760_000_000,
    answers: [
      {
        parts: [
          { type: 'reasoning', text: 'Hm.', signature: 'abc', origin: 'messages' },
          { type: 'text', text: 'Hello.' },
          { type: 'toolCall', id: 'call_1', name: 'weather', arguments: '' },
        ],
        stop: 'toolCalls',
      },
    ],
    usage: { input: 10, output: 7, cachedInput: 4, reasoning: 2 },
  };

  test('a response has parts, a finish reason and all token classes', () => {
    expect(generateContent.writeResponse(response, REQUEST)).toEqual({
      candidates: [
        {
          content: {
            role: 'model',
            parts: [
              { text: 'Hm.', thought: true, thoughtSignature: expect.any(String) as unknown },
              { text: 'Hello.' },
              { functionCall: { id: 'call_1', name: 'weather', args: {} } },
            ],
          },
          finishReason: 'STOP',
          index: 0,
        },
      ],
      usageMetadata: {
        promptTokenCount: 10,
        cachedContentTokenCount: 4,
        candidatesTokenCount: 5,
        thoughtsTokenCount: 2,
        totalTokenCount: 17,
      },
      modelVersion: 'other-1',
      createTime: '2025-10-09T08:53:20.000Z',
      responseId: 'resp-1',
    });
  });

  test('the signature of another provider comes back from the client unchanged, as Base64 on the way', () => {
    const { candidates } = generateContent.writeResponse(response, REQUEST) as {
      candidates: { content: { parts: { thoughtSignature?: string }[] } }[];
    };
    const content = candidates[0]?.content;
    expect(content?.parts[0]?.thoughtSignature).toMatch(/^[A-Za-z0-9+/]+=*$/);
    const { turns } = read({ contents: [content] });
    expect(turns[0]?.parts[0]).toMatchObject({
      type: 'reasoning',
      text: 'Hm.',
      signature: 'abc',
      origin: 'messages',
    });
  });
});

describe('streams read from streamGenerateContent', () => {
  const chunk = (parts: readonly object[], more: object = {}): object => ({
    candidates: [{ content: { role: 'model', parts }, index: 0, ...more }],
    modelVersion: 'gemini-2.5-flash-001',
    responseId: 'resp-1',
  });

  test('texts of consecutive events are one part; thoughts and calls are parts of their own', () => {
    const calls = chunk([{ functionCall: { id: 'fc-1', name: 'weather', args: { city: 'Bonn' } } }], {
      finishReason: 'STOP',
    });
    expect(
      events(chunk([{ text: 'Hm', thought: true }]), chunk([{ text: 'Hel' }]), chunk([{ text: 'lo.' }]), {
        ...calls,
        usageMetadata: ANSWER.usageMetadata,
      }),
    ).toEqual([
      { type: 'start', id: 'resp-1', model: 'gemini-2.5-flash-001' },
      {
        type: 'partStart',
        part: 0,
        answer: 0,
        content: { type: 'reasoning', isSummary: true, origin: 'generateContent' },
      },
      { type: 'delta', part: 0, text: 'Hm' },
      { type: 'partEnd', part: 0 },
      { type: 'partStart', part: 1, answer: 0, content: { type: 'text' } },
      { type: 'delta', part: 1, text: 'Hel' },
      { type: 'delta', part: 1, text: 'lo.' },
      { type: 'partEnd', part: 1 },
      { type: 'partStart', part: 2, answer: 0, content: { type: 'toolCall', id: 'fc-1', name: 'weather' } },
      { type: 'delta', part: 2, text: '{"city":"Bonn"}' },
      { type: 'partEnd', part: 2 },
      { type: 'answerEnd', answer: 0, stop: 'toolCalls' },
      { type: 'end', usage: USAGE },
    ]);
  });

  test('a stream that is cut off before its finish reason has no end, nor has one without any answer', () => {
    expect(events(chunk([{ text: 'Hel' }])).at(-1)).toEqual({ type: 'delta', part: 0, text: 'Hel' });
    expect(events()).toEqual([]);
  });

  test('an error in a stream is the last event', () => {
    const error = { code: 503, message: 'Overloaded.', status: 'UNAVAILABLE' };
    expect(events(chunk([{ text: 'Hel' }]), { error }).slice(-1)).toEqual([
      { type: 'error', error: { message: 'Overloaded.', status: 503, code: 'UNAVAILABLE' } },
    ]);
  });

  test('a prompt that is blocked ends with a filter', () => {
    expect(events({ promptFeedback: { blockReason: 'SAFETY' } }).slice(1)).toEqual([
      { type: 'answerEnd', answer: 0, stop: 'filter' },
      { type: 'end' },
    ]);
  });
});

describe('streams written as streamGenerateContent', () => {
  const head = { modelVersion: 'm', responseId: 'r' };
  const part = (content: object): object => ({
    candidates: [{ content: { role: 'model', parts: [content] }, index: 0 }],
    ...head,
  });

  test('arguments of a tool call are written as a whole, stop reason and token counts in the last event', () => {
    expect(
      bodies([
        { type: 'start', id: 'r', model: 'm' },
        { type: 'partStart', part: 0, answer: 0, content: { type: 'reasoning' } },
        { type: 'delta', part: 0, text: 'Hm' },
        { type: 'partEnd', part: 0 },
        { type: 'partStart', part: 1, answer: 0, content: { type: 'text' } },
        { type: 'delta', part: 1, text: 'Hello.' },
        { type: 'partEnd', part: 1 },
        { type: 'partStart', part: 2, answer: 0, content: { type: 'toolCall', id: 'c', name: 'f' } },
        { type: 'delta', part: 2, text: '{"a":' },
        { type: 'ping' },
        { type: 'delta', part: 2, text: '1}' },
        { type: 'partEnd', part: 2 },
        { type: 'answerEnd', answer: 0, stop: 'toolCalls' },
        { type: 'end', usage: { input: 3, output: 4 } },
      ]),
    ).toEqual([
      part({ text: 'Hm', thought: true }),
      part({ text: 'Hello.' }),
      part({ functionCall: { id: 'c', name: 'f', args: { a: 1 } } }),
      {
        candidates: [{ content: { role: 'model', parts: [{ text: '' }] }, finishReason: 'STOP', index: 0 }],
        usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 4, totalTokenCount: 7 },
        ...head,
      },
    ]);
  });

  test('the signature of another provider is a thought without text, which the client sends back', () => {
    const written = bodies([
      { type: 'start', id: 'r', model: 'm' },
      { type: 'partStart', part: 0, answer: 0, content: { type: 'reasoning', origin: 'messages' } },
      { type: 'delta', part: 0, text: 'Hm' },
      { type: 'signature', part: 0, signature: 'abc' },
      { type: 'partEnd', part: 0 },
    ]) as { candidates: { content: object }[] }[];
    const { turns } = read({ contents: written.map(({ candidates }) => candidates[0]?.content) });
    expect(turns.at(-1)?.parts).toMatchObject([
      { type: 'reasoning', text: 'Hm', signature: 'abc', origin: 'messages' },
    ]);
  });

  test('an error in a stream has the envelope of Google', () => {
    expect(bodies([{ type: 'error', error: { message: 'Late.', status: 504 } }])).toEqual([
      { error: { code: 504, message: 'Late.', status: 'DEADLINE_EXCEEDED' } },
    ]);
  });
});

describe('generateContent of anything', () => {
  /** JSON values whose members have names of the format. */
  const names = [
    ...['contents', 'parts', 'role', 'text', 'thought', 'thoughtSignature', 'inlineData', 'mimeType', 'data'],
    ...['functionCall', 'functionResponse', 'name', 'args', 'id', 'response', 'fileData', 'fileUri', 'tools'],
    ...[
      'functionDeclarations',
      'parameters',
      'toolConfig',
      'functionCallingConfig',
      'mode',
      'generationConfig',
    ],
    ...['responseSchema', 'thinkingConfig', 'systemInstruction', 'safetySettings', 'labels', 'candidates'],
    ...['content', 'finishReason', 'index', 'usageMetadata', 'promptTokenCount', 'error', 'code', 'message'],
    ...['promptFeedback', 'blockReason', 'createTime', 'system_instruction', 'items', 'properties', 'type'],
  ];
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom(null, '', 'user', 'model', 'STOP', 'ANY', 'image/png', 0, 1, -1, 1.5, true, false),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...names), tie('value'), { maxKeys: 5 }),
    ),
  }));
  const body = fc.dictionary(fc.constantFrom(...names), value, { maxKeys: 6 });

  /** Nothing but `Untranslatable` is thrown. */
  const orRefused = (action: () => unknown): void => {
    try {
      action();
    } catch (error) {
      if (!(error instanceof Untranslatable)) throw error;
    }
  };

  test('requests, responses, errors and events of any JSON are read or refused', () => {
    fc.assert(
      fc.property(body, (anything) => {
        const json = JSON.parse(JSON.stringify(anything)) as Json;
        orRefused(() => generateContent.writeRequest(generateContent.readRequest(json, TARGET)));
        orRefused(() => generateContent.readResponse(json));
        generateContent.readError(json, 500);
        orRefused(() => events(json));
      }),
      { numRuns: repeats(800, 10_000) },
    );
  });
});
