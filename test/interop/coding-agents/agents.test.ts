import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import type { TestGateway } from '../../kit/gateway.ts';
import { answering, bodyOf, chunk, DONE, FINISH, modelsGateway, streaming } from '../../kit/llm-provider.ts';
import { type Answer, type HttpUpstream, httpUpstream } from '../../kit/upstream.ts';
import { type Agent, claudeCode, codex, KEY } from './agents.ts';

const PROVIDER_KEY = 'sk-provider';
const USAGE = chunk(undefined, { usage: { prompt_tokens: 900, completion_tokens: 30, total_tokens: 930 } });

const says = (text: string): string[] => [
  chunk({ role: 'assistant', content: '' }),
  chunk({ content: text }),
  FINISH,
  USAGE,
  DONE,
];

/** A text, and the call of a tool whose arguments arrive in pieces. */
const calls = (name: string, args: object): string[] => [
  chunk({ role: 'assistant', content: 'One moment.' }),
  chunk({ tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name, arguments: '' } }] }),
  ...(JSON.stringify(args).match(/.{1,9}/gsu) ?? []).map((piece) =>
    chunk({ tool_calls: [{ index: 0, function: { arguments: piece } }] }),
  ),
  chunk(undefined, { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] }),
  USAGE,
  DONE,
];

/** A provider with chat completions and nothing else, which streams these answers one after another. */
function inTurn(...turns: readonly (readonly string[])[]): Promise<HttpUpstream> {
  let turn = 0;
  const answer: Answer = (request, response, received) => {
    if (request.url !== '/v1/chat/completions') return answering('{}', 404)(request, response, received);
    const parts = turns[turn] ?? says('There is nothing more to say.');
    turn += 1;
    return streaming((reply) => reply.end(parts.join('')))(request, response, received);
  };
  return httpUpstream(answer);
}

interface Message {
  readonly role: string;
  readonly content: unknown;
}
const messagesTo = (provider: HttpUpstream, index: number): readonly Message[] =>
  bodyOf(provider, index)['messages'] as readonly Message[];

/** The agent does a task, in a folder with a note, with models of this provider. */
async function work(agent: Agent, provider: HttpUpstream, model: string) {
  const home = await temporaryFolder();
  const folder = await temporaryFolder();
  writeFileSync(join(folder.path, 'note.txt'), 'The word is plover.\n');
  const gate = await modelsGateway(
    [
      {
        name: '*',
        provider: { custom: { formats: [{ type: 'completions' }] } },
        params: { baseUrl: `http://${provider.address}/v1`, apiKey: PROVIDER_KEY, model: 'qwen3-coder' },
      },
    ],
    { policies: { apiKey: { mode: 'strict', keys: [{ key: KEY }] } } },
  );
  const prompt = 'Which word is in note.txt?';
  const outcome = await agent({ home: home.path, folder: folder.path, url: gate.url, model, prompt });
  return {
    ...outcome,
    gate,
    read: (name: string) => readFileSync(join(folder.path, name), 'utf8'),
    async [Symbol.asyncDispose]() {
      await gate.close();
      await home.remove();
      await folder.remove();
    },
  };
}

/** Everything that reached the provider was a chat completion, without a credential or header of the agent's API. */
function expectOnlyChatCompletions({ received }: HttpUpstream): void {
  for (const { target, headers, body } of received) {
    expect(target).toBe('/v1/chat/completions');
    expect(headers['authorization']).toBe(`Bearer ${PROVIDER_KEY}`);
    expect(`${JSON.stringify(headers)}${body}`).not.toContain(KEY);
    expect(Object.keys(headers).filter((name) => /^(anthropic|x-api-key|openai|chatgpt)/.test(name))).toEqual(
      [],
    );
    expect(JSON.parse(Buffer.from(body, 'latin1').toString())).toMatchObject({
      model: 'qwen3-coder',
      stream: true,
      stream_options: { include_usage: true },
    });
  }
}

/** Lines of the access log of calls that reached a provider. Claude Code also sends `HEAD /`. */
async function callsOf(gate: TestGateway, count: number): Promise<Record<string, string>[]> {
  const lines: Record<string, string>[] = [];
  for (let place = 1; lines.length < count; place += 1) {
    const line = await gate.accessLine(place);
    if (line['endpoint'] !== undefined) lines.push(line);
  }
  return lines;
}

const AGENTS = [
  {
    name: 'Claude Code',
    agent: claudeCode,
    model: 'claude-sonnet-5',
    command: calls('Bash', { command: 'cat note.txt', description: 'Reads the note' }),
  },
  // Codex declares other tools for models that it does not know: some are in a namespace.
  { name: 'Codex', agent: codex, model: 'gpt-5.5', command: calls('exec_command', { cmd: 'cat note.txt' }) },
  {
    name: 'Codex with an unknown model',
    agent: codex,
    model: 'qwen3',
    command: calls('exec_command', { cmd: 'cat note.txt' }),
  },
];

describe.each(AGENTS)('$name in front of a provider of chat completions', ({ agent, model, command }) => {
  test('an agent gets a text', async () => {
    await using provider = await inTurn(says('I do not know: 4 ≠ 5.'));
    await using served = await work(agent, provider, model);
    expect(served).toMatchObject({
      code: 0,
      output: expect.stringContaining('I do not know: 4 ≠ 5.') as string,
    });
    expectOnlyChatCompletions(provider);
    const asked = messagesTo(provider, 0).findLast(({ role }) => role === 'user')?.content;
    expect(JSON.stringify(asked)).toContain('Which word is in note.txt?');
  });

  test('an agent runs a command for the model, and gets the text after its output', async () => {
    await using provider = await inTurn(command, says('It is plover.'));
    await using served = await work(agent, provider, model);
    expect(served).toMatchObject({ code: 0, output: expect.stringContaining('It is plover.') as string });
    expectOnlyChatCompletions(provider);
    expect(provider.received).toHaveLength(2);
    const [called, result] = messagesTo(provider, 1).slice(-2);
    expect(called).toMatchObject({ role: 'assistant', tool_calls: [{ id: 'call_1' }] });
    expect(result).toMatchObject({ role: 'tool', tool_call_id: 'call_1' });
    expect(JSON.stringify(result?.content)).toContain('The word is plover.');
    const metered = { 'gen_ai.usage.input_tokens': '900', 'gen_ai.usage.output_tokens': '30' };
    expect(await callsOf(served.gate, 2)).toMatchObject([metered, metered]);
  });

  test('an agent ends with the error of the provider', async () => {
    const error = { message: 'The context is too long.', type: 'invalid_request_error', code: 'too_long' };
    await using provider = await httpUpstream(answering(JSON.stringify({ error }), 400));
    await using served = await work(agent, provider, model);
    expect(served.code).toBe(1);
    expect(served.output).toContain('The context is too long.');
  });
});

test('Codex applies a patch, with a tool that is not a function', async () => {
  const input = '*** Begin Patch\n*** Add File: new.txt\n+plover\n*** End Patch\n';
  await using provider = await inTurn(calls('apply_patch', { input }), says('Written.'));
  await using served = await work(codex, provider, 'gpt-5.5');
  expect(served).toMatchObject({ code: 0, output: expect.stringContaining('Written.') as string });
  expect(served.read('new.txt')).toBe('plover\n');
  expectOnlyChatCompletions(provider);
});
