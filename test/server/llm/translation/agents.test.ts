import type Anthropic from '@anthropic-ai/sdk';
import type OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { claude, gatewayTo, openAi, providerOf } from '../../../kit/llm-answers.ts';
import { bodyOf, chunk, DONE, streaming } from '../../../kit/llm-provider.ts';
import type { Answer } from '../../../kit/upstream.ts';

// What coding agents send and need, through a provider that has only chat completions.

const USAGE = { prompt_tokens: 900, completion_tokens: 30, total_tokens: 930 };

const call = (index: number, id: string, name: string, args: string): string[] => [
  chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
  ...(args.match(/.{1,7}/gs) ?? []).map((piece) =>
    chunk({ tool_calls: [{ index, function: { arguments: piece } }] }),
  ),
];
const end = (reason: string): string[] => [
  chunk(undefined, { choices: [{ index: 0, delta: {}, finish_reason: reason }] }),
  chunk(undefined, { usage: USAGE }),
  DONE,
];

/** A provider that streams one of these answers per call. */
function inTurn(...answers: readonly (readonly string[])[]): Answer {
  let turn = 0;
  return (...args) => {
    const answer = answers[turn] ?? [];
    turn += 1;
    return streaming((response) => {
      for (const part of answer) response.write(part);
      response.end();
    })(...args);
  };
}

describe('Claude Code', () => {
  const tools: Anthropic.Beta.BetaTool[] = [
    {
      name: 'Read',
      description: 'Reads a file.',
      input_schema: {
        type: 'object',
        properties: { file_path: { type: 'string' } },
        required: ['file_path'],
      },
    },
    {
      name: 'Bash',
      description: 'Runs a command.',
      input_schema: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
      cache_control: { type: 'ephemeral' },
    },
  ];
  const ask = (messages: Anthropic.Beta.BetaMessageParam[]) => ({
    model: 'claude-sonnet-5',
    max_tokens: 32_000,
    system: [
      {
        type: 'text' as const,
        text: 'You are a coding agent.',
        cache_control: { type: 'ephemeral' as const },
      },
    ],
    messages,
    tools,
    thinking: { type: 'enabled' as const, budget_tokens: 31_999 },
    metadata: { user_id: 'user_1' },
    betas: ['claude-code-20250219', 'interleaved-thinking-2025-05-14'],
  });

  test('Claude Code calls tools in parallel and continues with their results on a provider of chat completions', async () => {
    await using provider = await providerOf(
      'completions',
      inTurn(
        [
          chunk({ role: 'assistant', content: '' }),
          chunk({ reasoning_content: 'Look at ' }),
          chunk({ reasoning_content: 'the test.' }),
          chunk({ content: 'I will read the test and run it.' }),
          ...call(0, 'call_a', 'Read', '{"file_path":"/repo/a.test.ts"}'),
          ...call(1, 'call_b', 'Bash', '{"command":"npm test"}'),
          ...end('tool_calls'),
        ],
        [chunk({ role: 'assistant', content: 'Fixed.' }), ...end('stop')],
      ),
    );
    await using gate = await gatewayTo(provider, 'completions', {
      params: { model: 'qwen3-coder', apiKey: 'sk-provider' },
    });
    const { messages } = claude(gate).beta;
    const question: Anthropic.Beta.BetaMessageParam = {
      role: 'user',
      content: [{ type: 'text', text: 'Fix the test.', cache_control: { type: 'ephemeral' } }],
    };
    const first = await messages.stream(ask([question])).finalMessage();
    expect(first.stop_reason).toBe('tool_use');
    expect(first.content).toMatchObject([
      { type: 'thinking', thinking: 'Look at the test.' },
      { type: 'text', text: 'I will read the test and run it.' },
      { type: 'tool_use', id: 'call_a', name: 'Read', input: { file_path: '/repo/a.test.ts' } },
      { type: 'tool_use', id: 'call_b', name: 'Bash', input: { command: 'npm test' } },
    ]);
    expect(first.usage).toMatchObject({ input_tokens: 900, output_tokens: 30 });

    const results: Anthropic.Beta.BetaMessageParam = {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'call_a', content: 'it("works")' },
        { type: 'tool_result', tool_use_id: 'call_b', content: 'Exit code 1', is_error: true },
      ],
    };
    const answered: Anthropic.Beta.BetaMessageParam = { role: 'assistant', content: first.content };
    const second = await messages.stream(ask([question, answered, results])).finalMessage();
    expect(second).toMatchObject({ stop_reason: 'end_turn', content: [{ type: 'text', text: 'Fixed.' }] });

    const { messages: sent, ...rest } = bodyOf(provider);
    expect(rest).toMatchObject({
      model: 'qwen3-coder',
      stream: true,
      stream_options: { include_usage: true },
      reasoning_effort: 'high',
    });
    expect(sent).toEqual([
      { role: 'system', content: 'You are a coding agent.' },
      { role: 'user', content: 'Fix the test.' },
      {
        role: 'assistant',
        reasoning_content: 'Look at the test.',
        content: 'I will read the test and run it.',
        tool_calls: [
          {
            id: 'call_a',
            type: 'function',
            function: { name: 'Read', arguments: '{"file_path":"/repo/a.test.ts"}' },
          },
          { id: 'call_b', type: 'function', function: { name: 'Bash', arguments: '{"command":"npm test"}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'call_a', content: 'it("works")' },
      { role: 'tool', tool_call_id: 'call_b', content: expect.stringContaining('Exit code 1') as string },
    ]);
    const { target, headers } = provider.received.at(-1) ?? {};
    expect(target).toBe('/v1/chat/completions');
    expect(headers).toMatchObject({ authorization: 'Bearer sk-provider' });
    for (const name of ['anthropic-beta', 'anthropic-version', 'x-api-key'])
      expect(headers).not.toHaveProperty(name);
  });
});

describe('Codex', () => {
  const tools: OpenAI.Responses.Tool[] = [
    {
      type: 'function',
      name: 'exec_command',
      description: 'Runs a command.',
      strict: false,
      parameters: { type: 'object', properties: { cmd: { type: 'string' } }, required: ['cmd'] },
    },
    {
      type: 'custom',
      name: 'apply_patch',
      description: 'Edits files.',
      format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' },
    },
  ];
  const ask = (input: OpenAI.Responses.ResponseInput) => ({
    model: 'gpt-5-codex',
    instructions: 'You are a coding agent.',
    input,
    tools,
    tool_choice: 'auto' as const,
    parallel_tool_calls: false,
    reasoning: { effort: 'medium' as const, summary: 'auto' as const },
    store: false,
    include: ['reasoning.encrypted_content' as const],
    prompt_cache_key: '0198',
  });
  const PATCH = '*** Begin Patch\n*** Update File: a.ts\n*** End Patch';

  test('Codex runs commands and applies patches with a custom tool on a provider of chat completions', async () => {
    await using provider = await providerOf(
      'completions',
      inTurn(
        [
          chunk({ role: 'assistant', content: '' }),
          chunk({ reasoning_content: 'Read it first.' }),
          ...call(0, 'call_1', 'exec_command', '{"cmd":"cat a.ts"}'),
          ...end('tool_calls'),
        ],
        [...call(0, 'call_2', 'apply_patch', JSON.stringify({ input: PATCH })), ...end('tool_calls')],
        [chunk({ role: 'assistant', content: 'Fixed.' }), ...end('stop')],
      ),
    );
    await using gate = await gatewayTo(provider, 'completions', { params: { model: 'qwen3-coder' } });
    const { responses } = openAi(gate);
    const input: OpenAI.Responses.ResponseInput = [
      { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'read-only' }] },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Fix the test.' }] },
    ];
    const first = await responses.stream(ask(input)).finalResponse();
    expect(first.output).toMatchObject([
      { type: 'reasoning', summary: [{ text: 'Read it first.' }] },
      { type: 'function_call', call_id: 'call_1', name: 'exec_command', arguments: '{"cmd":"cat a.ts"}' },
    ]);
    expect(first.usage).toMatchObject({ input_tokens: 900, output_tokens: 30 });
    input.push(...(first.output as OpenAI.Responses.ResponseInputItem[]), {
      type: 'function_call_output',
      call_id: 'call_1',
      output: 'let x = 1;',
    });

    const stream = responses.stream(ask(input));
    const deltas: string[] = [];
    stream.on('event', (event) => {
      if (event.type === 'response.custom_tool_call_input.delta') deltas.push(event.delta);
    });
    const second = await stream.finalResponse();
    expect(second.output).toMatchObject([
      { type: 'custom_tool_call', call_id: 'call_2', name: 'apply_patch', input: PATCH },
    ]);
    expect(deltas.join('')).toBe(PATCH);
    input.push(...(second.output as OpenAI.Responses.ResponseInputItem[]), {
      type: 'custom_tool_call_output',
      call_id: 'call_2',
      output: 'Done',
    });

    const third = await responses.stream(ask(input)).finalResponse();
    expect(third).toMatchObject({ status: 'completed', output_text: 'Fixed.' });
    expect(bodyOf(provider)['messages']).toMatchObject([
      { role: 'system' },
      { role: 'user', content: 'Fix the test.' },
      { role: 'assistant', reasoning_content: 'Read it first.', tool_calls: [{ id: 'call_1' }] },
      { role: 'tool', tool_call_id: 'call_1', content: 'let x = 1;' },
      {
        role: 'assistant',
        tool_calls: [
          { id: 'call_2', function: { name: 'apply_patch', arguments: JSON.stringify({ input: PATCH }) } },
        ],
      },
      { role: 'tool', tool_call_id: 'call_2', content: 'Done' },
    ]);
  });
});
