import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { AGCTL, agctl } from '../kit/process.ts';

const SYSTEM_NODE = '/usr/bin/node';
const systemVersion = existsSync(SYSTEM_NODE)
  ? execFileSync(SYSTEM_NODE, ['--version'], { encoding: 'utf8' }).trim().slice(1)
  : undefined;
const isOld = systemVersion !== undefined && Number(systemVersion.split('.')[0]) < 22;

const tooOld = (version: string): string =>
  `agctl needs Node.js 22.19 or newer; this is ${version}.\n` +
  `Get one from https://nodejs.org, or use one for this command alone: npx -y node@26 ${AGCTL}\n`;

test.skipIf(!isOld)(
  'agctl on an old Node.js prints the required version and how to get it with exit code 2',
  async () => {
    expect(await agctl(['version'], { node: SYSTEM_NODE })).toEqual({
      code: 2,
      signal: null,
      stdout: '',
      stderr: tooOld(systemVersion ?? ''),
    });
  },
);

// On any Node.js: runs the start script with another version number.
test.each([
  ['18.20.4', 2],
  ['22.18.0', 2],
  ['22.19.0', 0],
  ['23.0.0', 0],
])('agctl on Node.js %s exits with %i', (version, expected) => {
  const versions = JSON.stringify({ ...process.versions, node: version });
  const pretend = `Object.defineProperty(process, 'versions', { value: ${versions} });`;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`, AGCTL, '--version'],
    { encoding: 'utf8' },
  );
  expect(status).toBe(expected);
  expect(stdout === '').toBe(expected !== 0);
  expect(stderr).toBe(expected === 0 ? '' : tooOld(version));
});
