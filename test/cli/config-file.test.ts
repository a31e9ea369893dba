import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { service } from '../kit/process.ts';

const CONFIG = `
config: { adminAddr: off }
gateways:
  default:
    port: 0
    routes:
      - policies:
          directResponse: { status: 200, body: "\${GREETING:-none}" }
`;

test.each([[['serve']], [['gateway', 'serve']]])(
  '`agctl %j` without -f serves gateway.yaml of the working folder',
  async (args) => {
    await using folder = await temporaryFolder();
    writeFileSync(join(folder.path, 'gateway.yaml'), CONFIG);
    await using gateway = await service(args, { cwd: folder.path });
    expect(gateway.stderr).toContain('gateway.yaml');
    expect(await (await fetch(gateway.url)).text()).toBe('none');
  },
);

test('variables of --env-from are available to the configuration, and those of the environment take precedence', async () => {
  await using folder = await temporaryFolder();
  writeFileSync(join(folder.path, 'gateway.yaml'), CONFIG);
  writeFileSync(join(folder.path, '.env'), `# a comment\nGREETING="hello world"\n`);
  await using gateway = await service(['serve', '--env-from', '.env'], { cwd: folder.path });
  expect(await (await fetch(gateway.url)).text()).toBe('hello world');
  await using second = await service(['--env-from', '.env', 'serve'], {
    cwd: folder.path,
    env: { GREETING: 'mine' },
  });
  expect(await (await fetch(second.url)).text()).toBe('mine');
});

test.each([[['check', '--offline']], [['config', 'validate']]])(
  '`agctl %j` without -f reads gateway.yaml of the working folder',
  async (args) => {
    await using folder = await temporaryFolder();
    writeFileSync(join(folder.path, 'gateway.yaml'), CONFIG);
    const { code, stdout, stderr } = await cli(args, { cwd: folder.path });
    expect([code, `${stdout}${stderr}`]).toEqual([0, expect.stringContaining('gateway.yaml')]);
  },
);
