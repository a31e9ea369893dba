import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from './kit/folder.ts';
import { isAlive } from './kit/is-alive.ts';
import { service } from './kit/process.ts';
import { until } from './kit/until.ts';

// The test kit itself, in runs of vitest of their own.

const project = fileURLToPath(new URL('..', import.meta.url));

interface Run {
  readonly code: number;
  readonly output: string;
}

/** Runs vitest on one file, with the kit's reporter and setup file. */
async function vitest(folder: string, file: string, allowed: readonly object[] = []): Promise<Run> {
  mkdirSync(join(folder, 'test'));
  symlinkSync(join(project, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'test', 'a.test.js'), file);
  writeFileSync(
    join(folder, 'vitest.config.mjs'),
    `import { retriedReporter } from ${JSON.stringify(join(project, 'test/kit/known-flaky.ts'))};
export default { test: {
  retry: 1, testTimeout: 500, reporters: ['default', retriedReporter(${JSON.stringify(allowed)})],
  setupFiles: [${JSON.stringify(join(project, 'test/kit/children.ts'))}],
} };`,
  );
  const { CI: _, ...env } = process.env;
  return new Promise((resolve) => {
    const command = [join(project, 'node_modules/vitest/vitest.mjs'), 'run', '--root', folder, '--no-color'];
    execFile(process.execPath, command, { env }, (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, output: stdout + stderr });
    });
  });
}

const IMPORT = `import { expect, test } from 'vitest';\n`;
const SECOND_TRY = `${IMPORT}let tries = 0;\ntest('flaky', () => expect(++tries).toBe(2));\n`;

describe.concurrent('tests that pass only on a retry', () => {
  test('a test that passes only on a retry fails the run and is reported', async () => {
    await using folder = await temporaryFolder();
    const { code, output } = await vitest(folder.path, SECOND_TRY);
    expect(code).toBe(1);
    expect(output).toMatch(
      /FAILED: passed only at a retry.*\n {2}test\/a\.test\.js > flaky: passed at try 2/,
    );
  });

  test('a test that passes only on a retry is only reported if known-flaky lists it', async () => {
    await using folder = await temporaryFolder();
    const { code, output } = await vitest(folder.path, SECOND_TRY, [{ tests: 'test/', reason: 'a reason' }]);
    expect(output).toMatch(/RETRIED.*\n {2}test\/a\.test\.js > flaky/);
    expect(code).toBe(0);
  });
});

describe.concurrent('child processes of tests', () => {
  test('a child process of a test is ended with its test file, even after a test timeout', async () => {
    await using folder = await temporaryFolder();
    const pids = join(folder.path, 'pids');
    const { code } = await vitest(
      folder.path,
      `${IMPORT}
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
test('hangs', async () => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  appendFileSync(${JSON.stringify(pids)}, child.pid + '\\n');
  await new Promise(() => {});
});`,
    );
    expect(code).toBe(1);
    const started = readFileSync(pids, 'utf8').trim().split('\n').map(Number);
    expect(started.length).toBeGreaterThan(0);
    await until(() => !started.some(isAlive));
  });

  test('a child process that does not become ready before the timeout is ended', async () => {
    await using folder = await temporaryFolder();
    const lock = join(folder.path, 'memory.db.lock');
    const args = ['memory-adapter', 'stdio', '--embedded', '--data', folder.path];
    const started = until(() => existsSync(lock), 30_000);
    const failed = service(args, { giveUp: started }).catch((error: Error) => error.message);
    await started;
    const { pid } = JSON.parse(readFileSync(lock, 'utf8')) as { pid: number };
    expect(await failed).toContain('memory-adapter stdio was not ready in time');
    expect(isAlive(pid)).toBe(false);
  });
});

test('each decision record has a unique number, the same in its file name and title', () => {
  const folder = join(project, 'docs/decisions');
  const records = readdirSync(folder).filter((name) => name !== 'README.md');
  const numbers = records.map((name) => name.slice(0, 4));
  expect(numbers).toEqual([...new Set(numbers)]);
  const titles = records.map((name) => readFileSync(join(folder, name), 'utf8').slice(0, 7));
  expect(titles).toEqual(numbers.map((number) => `# ${number} `));
});
