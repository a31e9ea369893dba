import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { answering, llmProvider } from '../kit/llm-provider.ts';
import { until } from '../kit/until.ts';

const { path: folder, remove } = await temporaryFolder();
afterAll(remove);

/** Runs `agctl check` with a provider that accepts the request for its models and answers on demand. */
async function checkWithSilentProvider(options: { isTTY?: boolean; args?: readonly string[] } = {}) {
  const { promise: isTime, resolve: answer } = Promise.withResolvers<void>();
  const provider = await llmProvider((...question) => {
    void isTime.then(() => answering('{"data":[]}')(...question));
  });
  const silent = {
    name: 'silent',
    provider: 'oaiCompat',
    params: { baseUrl: `http://${provider.address}/v1`, apiKey: '$THE_KEY' },
  };
  const absent = { name: 'absent', provider: 'oaiCompat', params: { baseUrl: 'http://127.0.0.1:1/v1' } };
  const file = join(folder, 'config.yaml');
  const gateways = { local: { port: 0, address: '127.0.0.1' } };
  writeFileSync(file, JSON.stringify({ gateways, llm: { gateways: 'local', models: [silent, absent] } }));
  const live = { stdout: '', stderr: '' };
  const args = ['check', '-f', file, '--only', 'environment,config,llm,idp', ...(options.args ?? [])];
  const finished = cli(args, {
    live,
    isTTY: options.isTTY === true,
    env: { NO_COLOR: '1', THE_KEY: 'sk-0123456789' },
  });
  return {
    live,
    finished,
    answer,
    [Symbol.asyncDispose]: async () => {
      answer();
      await finished;
      await provider[Symbol.asyncDispose]();
    },
  };
}

test('check prints results while a provider is silent, and stderr shows what it waits for', async () => {
  await using run = await checkWithSilentProvider();
  await until(() => run.live.stdout.includes('no route has mcpAuthentication'));
  expect(run.live.stdout).toContain('✓ valid');
  expect(run.live.stdout).toContain('absent   127.0.0.1:1: ');
  expect(run.live.stdout).not.toContain('silent ');
  await until(() => run.live.stderr !== '');
  // One line instead of one per second, because stderr is not a terminal.
  expect(run.live.stderr).toMatch(/^still waiting for silent \(\d s\)\n$/);
  run.answer();
  const { stdout, code } = await run.finished;
  expect(code).toBe(1);
  // Groups that are complete come first, and each title once.
  expect(stdout).toMatch(
    /\nidentity provider.*\n.*\nllm providers\n {2}✗ absent .*\n.*\n {2}✓ silent .* lists its models/,
  );
  expect(stdout.match(/^llm providers$/gm)).toHaveLength(1);
  expect(stdout).toMatch(/\n\n1 problem, 0 warnings, \d+ ok, 1 skipped\n$/);
});

test('check shows progress on a terminal in one line that is erased before the next result', async () => {
  await using run = await checkWithSilentProvider({ isTTY: true });
  await until(() => run.live.stderr.includes('still waiting for silent (2 s)'));
  expect(run.live.stderr.split('\n')).toHaveLength(1);
  run.answer();
  await run.finished;
  expect(run.live.stderr.endsWith('\r\u001b[K')).toBe(true);
});

test('check -o json prints one document in the order of the report, and the progress goes to stderr', async () => {
  await using run = await checkWithSilentProvider({ args: ['-o', 'json'] });
  await until(() => run.live.stderr.includes('still waiting for silent'));
  expect(run.live.stdout).toBe('');
  run.answer();
  const { stdout } = await run.finished;
  const { checks, summary } = JSON.parse(stdout);
  expect(checks.map(({ group }: { group: string }) => group)).toEqual([
    'environment',
    'environment',
    'config',
    'llm',
    'llm',
    'idp',
  ]);
  expect(summary).toMatchObject({ fail: 1, skip: 1 });
});

test('check shows no progress for checks that take less than a second', async () => {
  const file = join(folder, 'quick.yaml');
  writeFileSync(file, JSON.stringify({ llm: { port: 0, models: [{ name: '*', provider: 'echo' }] } }));
  const { stdout, stderr } = await cli(['check', '-f', file, '--only', 'environment,config'], {
    isTTY: true,
  });
  expect(stderr).toBe('');
  expect(stdout).toMatch(
    /^environment\n {2}.* Node\.js .*\n {2}.* localhost .*\nconfiguration .*\n {2}.* valid\n\n/,
  );
});
