import { globSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { LIMITS } from '../../src/core/limits.ts';

const folder = fileURLToPath(new URL('../../src/core/limits/', import.meta.url));

test('LIMITS has every limit of every file in core/limits, each name once', async () => {
  const files = globSync('*.ts', { cwd: folder }).filter((file) => basename(file) !== 'units.ts');
  const groups = await Promise.all(files.map((file) => import(folder + file) as Promise<object>));
  const names = groups.flatMap((group) =>
    Object.values(group).flatMap((limits: object) => Object.keys(limits)),
  );
  expect(names.toSorted()).toEqual(Object.keys(LIMITS).toSorted());
});
