import { mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../../../kit/config.ts';
import { temporaryFolder } from '../../../../kit/folder.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { INITIALIZE, openSession, post } from '../../../../kit/mcp.ts';

const temporary = await temporaryFolder();
afterAll(temporary.remove);
const folder = realpathSync(temporary.path);
mkdirSync(join(folder, 'data'));
writeFileSync(join(folder, 'file'), '');

const config = (cwd?: string): string => {
  const { name, stdio } = chaos('a');
  return mcpConfig([{ name, stdio: { ...stdio, ...(cwd !== undefined && { cwd }) } }]);
};

describe('stdio.cwd', () => {
  test.each([
    ['relative to the configuration file', 'data', join(folder, 'data')],
    ['absolute', join(folder, 'data'), join(folder, 'data')],
    ['not set, which means that of the configuration file', undefined, folder],
  ])('the working folder of a stdio server is %s', async (_, cwd, expected) => {
    await using gate = await gateway(config(cwd), { folder });
    const session = await openSession(`${gate.url}/mcp`);
    const { result } = await session.request('tools/call', { name: 'cwd' });
    expect(result.content[0].text).toBe(expected);
  });

  test('the command of a stdio server is looked up in its working folder', async () => {
    writeFileSync(join(folder, 'data', 'serve'), `#!/bin/sh\nexec "$@"\n`, { mode: 0o755 });
    const { name, stdio } = chaos('a');
    const target = { name, stdio: { cmd: './serve', args: [stdio.cmd, ...stdio.args], cwd: 'data' } };
    await using gate = await gateway(mcpConfig([target]), { folder });
    expect(gate.log.join('')).not.toContain('was not found');
    await openSession(`${gate.url}/mcp`);
  });

  test.each(['missing', 'file'])(
    'a working folder that is not there (%s) is reported at the start, to clients without its path, and in the log with it',
    async (cwd) => {
      await using gate = await gateway(config(cwd), { folder });
      const path = join(folder, cwd);
      expect(gate.log.join('')).toMatch(
        /\twarn\t.*working folder of a target was not found: create it, or correct stdio\.cwd\ttarget="a"/,
      );
      expect(gate.log.join('')).toContain(`cwd="${path}"`);
      const { status, error } = await post(`${gate.url}/mcp`, INITIALIZE);
      expect(status).toBe(500);
      expect(error.message).toContain('failed to start stdio server: its working folder does not exist');
      expect(JSON.stringify(error)).not.toContain(folder);
      expect(gate.log.join('')).toContain(`is not a folder: ${path} (stdio.cwd)`);
    },
  );
});
