import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { agctl } from '../kit/process.ts';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'agctl-home-'));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

/** Without the folder that the test runner names for all tests. */
const help = (env: Record<string, string | undefined>) =>
  agctl(['--help'], { env: { NODE_COMPILE_CACHE: undefined, XDG_CACHE_HOME: undefined, ...env } });

test('agctl keeps compiled code in the cache folder of its user', async () => {
  await help({ HOME: home });
  expect(readdirSync(join(home, '.cache/agctl'))).toHaveLength(1);
  await help({ HOME: home, XDG_CACHE_HOME: join(home, 'other') });
  expect(readdirSync(join(home, 'other/agctl'))).toHaveLength(1);
});

test('agctl runs without a cache folder where none can be created', async () => {
  const outcome = { code: 0, stderr: '' };
  expect(await help({ HOME: '/dev/null' })).toMatchObject(outcome);
  expect(await help({ HOME: undefined })).toMatchObject(outcome);
});

test('NODE_DISABLE_COMPILE_CACHE keeps agctl from writing compiled code', async () => {
  await help({ HOME: home, NODE_DISABLE_COMPILE_CACHE: '1' });
  expect(existsSync(join(home, '.cache'))).toBe(false);
});
