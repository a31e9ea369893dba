import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const SOURCE = join(import.meta.dirname, '../../src/cli/new-space.ts');

/** Prints how many MiB a half of V8's space for new objects has: after many of them with the bound, and after as many without it. */
const PROGRAM = `
  import { getHeapSpaceStatistics } from 'node:v8';
  const { boundNewSpace } = await import(${JSON.stringify(SOURCE)});
  const kept = new Array(30_000);
  const fill = async () => {
    for (let turn = 0; turn < 400; turn += 1) {
      for (let index = 0; index < 3_000; index += 1) kept[(turn % 10) * 3_000 + index] = { index, in: [index], text: 'object ' + index };
      await new Promise(setImmediate);
    }
    const space = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space');
    return Math.round((space.space_used_size + space.space_available_size) / 2 ** 20);
  };
  const stop = boundNewSpace(process.env);
  const bound = await fill();
  stop();
  // When V8 makes it larger depends on how long collections take.
  let free = bound;
  for (let times = 0; times < 5 && free <= bound; times += 1) free = await fill();
  console.log(JSON.stringify([bound, free]));
`;

const sizes = async (...flags: string[]): Promise<number[]> => {
  const { stdout } = await promisify(execFile)(process.execPath, [
    ...flags,
    '--input-type=module',
    '-e',
    PROGRAM,
  ]);
  return JSON.parse(stdout) as number[];
};

test('the space for new objects grows to 16 MiB and no further, until the bound is taken away', async () => {
  expect(await sizes()).toEqual([16, 32]);
});

test('a size that the user has set counts', async () => {
  expect(await sizes('--max-semi-space-size=8')).toEqual([8, 8]);
});
