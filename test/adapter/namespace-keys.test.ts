import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { namespaceKeysFrom } from '../../src/adapter/namespace-keys.ts';
import { createLog } from '../../src/core/log.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { until } from '../kit/until.ts';

test('a mistake in a changed file of namespace keys is logged although nobody calls, and its correction too', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'keys.yaml');
  writeFileSync(file, 'alice: the-key-of-alice\n');
  const lines: string[] = [];
  const sink = { write: (line: string) => void lines.push(line), dropped: 0, flush: () => Promise.resolve() };
  const keys = namespaceKeysFrom(file, [], createLog(sink, 'info', 'text'));
  writeFileSync(file, 'alice: [\n');
  await until(() => lines.some((line) => line.includes('the changed namespace keys are not used')));
  writeFileSync(file, 'alice: the-key-of-alice\nbob: the-key-of-bob\n');
  await until(() => lines.some((line) => line.includes('namespace keys were read again')));
  expect(keys.namespaceOf('the-key-of-bob')).toBe('bob');
  expect(lines.join('')).not.toContain('the-key');
});
