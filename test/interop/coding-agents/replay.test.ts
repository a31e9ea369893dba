import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { GatewayConfig } from '../../../src/library/index.ts';
import {
  replayCassette,
  type StubModel,
  stubModel,
  testGateway,
} from '../../../src/library/testing/index.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { type Agent, claudeCode, codex, geminiCli, KEY } from './agents.ts';

// Coding agents that run a command for a model: at a gateway, and then, without the model, at the recording.

const AGENTS = [
  {
    name: 'Claude Code',
    agent: claudeCode,
    model: 'claude-sonnet-5',
    tool: { name: 'Bash', arguments: { command: 'cat note.txt', description: 'Reads the note' } },
    ignore: [],
  },
  {
    name: 'Codex',
    agent: codex,
    model: 'gpt-5.5',
    tool: { name: 'exec_command', arguments: { cmd: 'cat note.txt' } },
    // The output of a command has its time.
    ignore: ['input[*].output'],
  },
  {
    name: 'Gemini CLI',
    agent: geminiCli,
    model: 'gemini-3-pro-preview',
    tool: { name: 'run_shell_command', arguments: { command: 'cat note.txt' } },
    // The output of a command has the number of its process.
    ignore: ['contents[*].parts[*].functionResponse.response.output'],
  },
];

const configOf = (model: StubModel): GatewayConfig => ({
  llm: {
    port: 3000,
    models: [{ name: '*', ...model.as('openAI') }],
    policies: { apiKey: { mode: 'strict', keys: [{ key: KEY }] } },
  },
});

test.each(AGENTS)('$name does its task at a recording', async ({ agent, model, tool, ignore }) => {
  await using home = await temporaryFolder();
  await using folder = await temporaryFolder();
  await using other = await temporaryFolder();
  writeFileSync(join(folder.path, 'note.txt'), 'The word is plover.\n');
  const file = join(other.path, 'cassette.jsonl');
  const work = (run: Agent, url: string) =>
    run({ home: home.path, folder: folder.path, url, model, prompt: 'Which word is in note.txt?' });
  {
    await using stub = await stubModel('It is plover.');
    stub.answer({ text: 'One moment.', toolCalls: [tool] });
    await using gateway = await testGateway(configOf(stub), { record: file });
    expect(await work(agent, gateway.url)).toMatchObject({
      code: 0,
      output: expect.stringContaining('It is plover.') as string,
    });
    expect(JSON.stringify(stub.calls.at(-1)?.messages)).toContain('The word is plover.');
  }
  await using replay = await replayCassette(file, { ignore });
  const again = await work(agent, replay.url);
  expect(replay.unmatched).toEqual([]);
  expect(again).toMatchObject({
    code: 0,
    output: expect.stringContaining('It is plover.') as string,
  });
});
