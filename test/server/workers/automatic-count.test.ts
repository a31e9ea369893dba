import { expect, test } from 'vitest';
import { workerCount } from '../../../src/server/config/workers.ts';

const MIB = 2 ** 20;
const automatic = (cores: number, memory: number): number =>
  workerCount({ config: { workers: 'auto' } }, () => ({ cores, memory }));

test.each([
  [2, 24 * 1024, 2],
  [12, 1024, 4],
  [12, 512, 2],
  [64, 128 * 1024, 64],
  [4, 256, 1],
  [4, 64, 1],
])('workers: auto on %i cores with %i MiB are %i', (cores, memory, count) => {
  expect(automatic(cores, memory * MIB)).toBe(count);
});

test('workers: auto are one for each core if the memory is not known, or without a limit', () => {
  expect([automatic(12, 0), automatic(12, 2 ** 64)]).toEqual([12, 12]);
});
