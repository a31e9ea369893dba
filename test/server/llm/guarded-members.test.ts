import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { eventsIn } from '../../kit/llm-events.ts';
import { callOf, type WIRE } from '../../kit/llm-formats.ts';
import {
  answering,
  EVERY_FORMAT,
  llmGateway,
  llmProvider,
  streaming,
  textOf,
} from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';

// Members that seldom have texts, or carry them in an unusual way: a card number in any of them is masked.

const CARD = '4111 1111 1111 1111';
const MASK = '<CREDIT_CARD>';
const HALVES = ['pay 4111 1111 1', '111 1111 now'];
const TOKENS = ['4111', ' 1111', ' 1111', ' 1111'];
const RULE = { regex: { rules: [{ builtin: 'creditCard' }] } };
type FormatName = keyof typeof WIRE;
type Case = readonly [what: string, format: FormatName, values: readonly object[]];

/** Names that have a meaning in messages, but not in the arguments of a tool. */
const VALUES = { name: CARD, id: CARD, url: CARD, nested: [{ type: CARD, data: CARD, mimeType: 'x' }] };

const chat = (delta: object, more: object = {}): object => ({ choices: [{ index: 0, delta, ...more }] });
const candidate = (part: object, more: object = {}): object => ({
  candidates: [{ content: { role: 'model', parts: [part] }, index: 0, ...more }],
});
const block = (delta: object): object => ({ type: 'content_block_delta', index: 0, delta });
const doneItem = (item: object): object => ({ type: 'response.output_item.done', output_index: 0, item });

const STREAMS: readonly Case[] = [
  [
    'arguments of a legacy function',
    'completions',
    HALVES.map((a) => chat({ function_call: { arguments: a } })),
  ],
  [
    'a call without index',
    'completions',
    HALVES.map((a) => chat({ tool_calls: [{ function: { arguments: a } }] })),
  ],
  [
    'the input of a custom tool',
    'completions',
    HALVES.map((a) => chat({ tool_calls: [{ index: 0, custom: { input: a } }] })),
  ],
  [
    'a transcript of speech',
    'completions',
    HALVES.map((transcript) => chat({ audio: { id: 'a', transcript } })),
  ],
  ['content in parts', 'completions', HALVES.map((text) => chat({ content: [{ type: 'text', text }] }))],
  ['a refusal', 'completions', HALVES.map((refusal) => chat({ refusal }))],
  [
    'reasoning of OpenRouter',
    'completions',
    HALVES.map((text) => chat({ reasoning_details: [{ text, index: 0 }] })),
  ],
  [
    'token probabilities',
    'completions',
    TOKENS.map((content) => chat({ content }, { logprobs: { content: [{ token: content, logprob: -1 }] } })),
  ],
  [
    'token probabilities',
    'textCompletions',
    TOKENS.map((text) => ({ choices: [{ index: 0, text, logprobs: { tokens: [text] } }] })),
  ],
  [
    'the input at the start of a block',
    'messages',
    [
      {
        type: 'content_block_start',
        index: 0,
        content_block: { type: 'tool_use', id: 't', name: 'pay', input: VALUES },
      },
    ],
  ],
  ['a citation', 'messages', [block({ type: 'citations_delta', citation: { cited_text: CARD } })]],
  ['a compaction', 'messages', HALVES.map((content) => block({ type: 'compaction_delta', content }))],
  ['a delta of unknown type', 'messages', HALVES.map((text) => block({ type: 'new_delta', text }))],
  ...[
    'refusal',
    'reasoning_text',
    'mcp_call_arguments',
    'custom_tool_call_input',
    'code_interpreter_call_code',
    'new',
  ].map((kind): Case => {
    const event = { type: `response.${kind}.delta`, output_index: 0, item_id: 'i' };
    return [kind, 'responses', HALVES.map((delta) => ({ ...event, delta }))];
  }),
  [
    'a delta with members',
    'responses',
    HALVES.map((stdout) => ({
      type: 'response.shell_call_output_content.delta',
      output_index: 0,
      delta: { stdout },
    })),
  ],
  [
    'an action',
    'responses',
    [doneItem({ type: 'local_shell_call', action: { command: ['pay'], env: VALUES } })],
  ],
  ['arguments', 'generateContent', [candidate({ functionCall: { name: 'pay', args: VALUES } })]],
  [
    'a number in a part of arguments',
    'generateContent',
    [candidate({ functionCall: { partialArgs: [{ jsonPath: '$.n', numberValue: 4111111111111111 }] } })],
  ],
  [
    'code',
    'generateContent',
    HALVES.map((code) => candidate({ executableCode: { language: 'PYTHON', code } })),
  ],
  [
    'the output of code',
    'generateContent',
    HALVES.map((output) => candidate({ codeExecutionResult: { outcome: 'OUTCOME_OK', output } })),
  ],
  [
    'token probabilities',
    'generateContent',
    TOKENS.map((token) => candidate({ text: token }, { logprobsResult: { chosenCandidates: [{ token }] } })),
  ],
];

const BODIES: readonly Case[] = [
  [
    'the input of a tool',
    'messages',
    [{ content: [{ type: 'tool_use', id: 't', name: 'pay', input: VALUES }] }],
  ],
  ['arguments', 'generateContent', [candidate({ functionCall: { name: 'pay', args: VALUES } })]],
  [
    'token probabilities',
    'generateContent',
    [candidate({ text: CARD }, { logprobsResult: { chosenCandidates: TOKENS.map((token) => ({ token })) } })],
  ],
  [
    'an action',
    'responses',
    [{ output: [{ type: 'local_shell_call', action: { command: [CARD], env: VALUES } }] }],
  ],
  [
    'a transcript with its pieces',
    'transcriptions',
    [
      {
        text: `Pay ${CARD}.`,
        words: TOKENS.map((word) => ({ word })),
        segments: [{ text: '4111 1111' }, { text: '1111 1111' }],
      },
    ],
  ],
  ['the prompt of an image', 'images', [{ data: [{ b64_json: 'AAAA', revised_prompt: `A card, ${CARD}` }] }]],
];

describe('members of model output', () => {
  test.each(STREAMS)('%s in a stream of %s is masked', async (_, format, events) => {
    await using provider = await llmProvider(
      streaming(async (response) => {
        for (const event of events) {
          response.write(`data: ${JSON.stringify(event)}\n\n`);
          await setImmediate();
        }
        response.end();
      }),
    );
    const { text } = await answered(provider, format, true);
    const sent = new Set(textsIn(events));
    // The mask is divided among the events.
    const changed = textsIn(eventsIn(text)).filter((each) => !sent.has(each));
    expect(changed.join('')).toContain(MASK);
    expect(text).not.toContain('1111');
  });

  test.each(BODIES)('%s in a body of %s is masked', async (_, format, [body]) => {
    await using provider = await llmProvider(answering(JSON.stringify(body)));
    const { text } = await answered(provider, format, false);
    expect(text).toContain(MASK);
    expect(text).not.toContain('1111');
  });

  test('one parameter of a function does not hold back those after it', async () => {
    const call = (jsonPath: string, stringValue: string, willContinue: boolean): string =>
      `data: ${JSON.stringify(candidate({ functionCall: { partialArgs: [{ jsonPath, stringValue, willContinue }], willContinue: true } }))}\n\n`;
    let resume = (): void => undefined;
    const read = new Promise<void>((resolve) => {
      resume = resolve;
    });
    await using provider = await llmProvider(
      streaming(async (response) => {
        response.write(call('$.a', `short ${CARD}`, false));
        for (let at = 0; at < 40; at += 1)
          response.write(call('$.b', 'a long text with words '.repeat(4), true));
        await read;
        response.end(call('$.b', 'the end', false));
      }),
    );
    await using served = await llmGateway(provider, {
      model: { provider: EVERY_FORMAT, guardrails: { response: [RULE] } },
    });
    const { path, body } = callOf('generateContent', 'm', true);
    const response = await fetch(served.url + path, { method: 'POST', body });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    const { value } = (await reader?.read()) ?? {};
    expect(value).toContain(`short ${MASK}`);
    expect(value).toContain('a long text');
    resume();
    for (let rest = await reader?.read(); rest?.done === false; rest = await reader?.read());
  });
});

describe('members of requests', () => {
  const REQUESTS: readonly Case[] = [
    ['a predicted output', 'completions', [{ messages: [], prediction: { type: 'content', content: CARD } }]],
    [
      'the input of a tool',
      'messages',
      [
        {
          messages: [
            { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'pay', input: VALUES }] },
          ],
        },
      ],
    ],
    [
      'the arguments and the result of a function',
      'generateContent',
      [
        {
          contents: [
            { role: 'model', parts: [{ functionCall: { name: 'pay', args: VALUES } }] },
            { role: 'user', parts: [{ functionResponse: { name: 'pay', response: VALUES } }] },
          ],
        },
      ],
    ],
  ];

  test.each(REQUESTS)('%s in a request of %s is masked', async (_, format, [members]) => {
    await using provider = await llmProvider(answering('{}'));
    const rule = { ...RULE, scope: ['messages', 'toolInput', 'toolOutput'] };
    await using served = await llmGateway(provider, {
      model: { provider: EVERY_FORMAT, guardrails: { request: [rule] } },
    });
    const { path } = callOf(format, 'm');
    const model = format === 'generateContent' ? {} : { model: 'm', max_tokens: 9 };
    await send(served.url + path, { method: 'POST', body: JSON.stringify({ ...model, ...members }) });
    expect(textOf(provider)).toContain(MASK);
    expect(textOf(provider)).not.toContain('1111');
  });
});

describe('numbers of 64 bits beside a masked text', () => {
  const ID = '{"id":9007199254740993,"share":1.0}';

  test.each<[FormatName, string, string]>([
    [
      'messages',
      `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":${ID}}]},{"role":"user","content":"${CARD}"}]}`,
      `{"content":[{"type":"text","text":"${CARD}"},{"type":"tool_use","id":"t","name":"f","input":${ID}}],"usage":{"input_tokens":1}}`,
    ],
    [
      'generateContent',
      `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":${ID}}}]},{"role":"user","parts":[{"text":"${CARD}"}]}]}`,
      `{"candidates":[{"content":{"parts":[{"text":"${CARD}"},{"functionCall":{"name":"f","args":${ID}}}]}}]}`,
    ],
  ])('survive in requests and responses of %s', async (format, request, answer) => {
    await using provider = await llmProvider(answering(answer));
    await using served = await llmGateway(provider, {
      model: { provider: EVERY_FORMAT, guardrails: { request: [RULE], response: [RULE] } },
      params: { model: 'm' },
    });
    const body = format === 'messages' ? request.replace('{', '{"model":"m",') : request;
    const { text } = await send(served.url + callOf(format, 'm').path, { method: 'POST', body });
    expect(textOf(provider)).toBe(body.replace(CARD, MASK));
    expect(text).toBe(answer.replace(CARD, MASK));
  });
});

async function answered(
  provider: Awaited<ReturnType<typeof llmProvider>>,
  format: FormatName,
  isStream: boolean,
): Promise<{ text: string }> {
  await using served = await llmGateway(provider, {
    model: { provider: EVERY_FORMAT, guardrails: { response: [RULE] } },
  });
  const { path, body } = callOf(format, 'm', isStream);
  return await send(served.url + path, { method: 'POST', body });
}

/** Every string in a value, in order. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}
