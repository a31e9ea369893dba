import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { missingConfigFile, resolveConfigFile } from '../../../../src/server/kernel/files/config-file.ts';
import { temporaryFolder } from '../../../kit/folder.ts';

test('a file of a configuration is looked for beside it first, then in the working folder', async () => {
  await using folder = await temporaryFolder();
  // The working folder has one.
  expect(resolveConfigFile(folder.path, 'package.json')).toBe(resolve('package.json'));
  writeFileSync(join(folder.path, 'package.json'), '');
  expect(resolveConfigFile(folder.path, 'package.json')).toBe(join(folder.path, 'package.json'));
  expect(resolveConfigFile(folder.path, 'no/such.pem')).toBe(join(folder.path, 'no/such.pem'));
});

test('the message about a missing file names both places', () => {
  expect(missingConfigFile('/nowhere', 'no/such.pem')).toBe(
    `file not found: /nowhere/no/such.pem, and ${resolve('no/such.pem')}`,
  );
  expect(missingConfigFile('/nowhere', '/no/such.pem')).toBe('file not found: /no/such.pem');
});
