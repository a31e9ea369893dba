import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';

test.each([
  ['the folder of the configuration', ['.'], [1]],
  ['a folder above it', ['..'], [1]],
  ['the root folder, after another one', ['./files', '/'], [2]],
  ['a folder beside it', ['../other', './files'], []],
  ['no folder', [], []],
])(
  'config validate warns of a filesystem server whose folder contains the configuration: %s',
  async (_what, folders, expected) => {
    await using folder = await temporaryFolder();
    mkdirSync(join(folder.path, 'own'));
    const file = join(folder.path, 'own/gateway.yaml');
    const stdio = { cmd: process.execPath, args: ['@modelcontextprotocol/server-filesystem', ...folders] };
    writeFileSync(file, JSON.stringify({ mcp: { targets: [{ name: 'files', stdio }] } }));
    const { code, stdout } = await cli(['config', 'validate', '-f', file, '-o', 'json']);
    const { diagnostics } = JSON.parse(stdout) as { diagnostics: { code: string; path: string }[] };
    const found = diagnostics.filter((each) => each.code === 'AGW0314');
    expect([code, found.map(({ path }) => path)]).toEqual([
      0,
      expected.map((index) => `/mcp/targets/0/stdio/args/${index}`),
    ]);
  },
);

test('config validate does not warn of a filesystem server with another working folder, nor of other programs', async () => {
  await using folder = await temporaryFolder();
  mkdirSync(join(folder.path, 'files'));
  const file = join(folder.path, 'gateway.yaml');
  const targets = [
    { name: 'a', stdio: { cmd: process.execPath, args: ['server-filesystem', '.'], cwd: './files' } },
    { name: 'b', stdio: { cmd: process.execPath, args: ['.'] } },
  ];
  writeFileSync(file, JSON.stringify({ mcp: { targets } }));
  const { stdout } = await cli(['config', 'validate', '-f', file, '-o', 'json']);
  expect(stdout).not.toContain('AGW0314');
});
