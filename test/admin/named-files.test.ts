import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway, type TestGateway } from '../kit/gateway.ts';
import { send } from '../kit/send.ts';

const SECRETS = ['root:x:0:0', 'hunter2', 'BEGIN', 'aws-main', 'my-tenant'];
const FILES: Readonly<Record<string, string>> = {
  'plain.txt': 'root:x:0:0:root:/root:/bin/sh\n',
  'half.json': '{"a": 1,\n "password": hunter2}',
  'account.json': '{"hunter2": "x", "BEGIN": "y"}',
  'list.json': '["hunter2"]',
  'catalog.json': '{"providers": {"aws-main": {"models": {"my-tenant": {"rates": {"input": "hunter2"}}}}}}',
  'catalog-key.json': '{"providers": {"aws-main": {"hunter2": 1}}}',
};

/** The response of the admin validator to a configuration that names this file. */
async function problems(gate: TestGateway, file: string): Promise<string> {
  const body = `config: { modelCatalog: [{ file: ${JSON.stringify(file)} }] }\ngateways: {}\n`;
  const { status, text } = await send(`${gate.admin}/api/config/validate`, {
    method: 'POST',
    headers: { 'content-type': 'application/yaml' },
    body,
  });
  expect(status).toBe(200);
  return text;
}

describe('the admin validator and files that a configuration names', () => {
  test.each(Object.keys(FILES))(
    'the admin validator reports that %s is wrong without showing its contents',
    async (name) => {
      await using folder = await temporaryFolder();
      writeFileSync(join(folder.path, name), FILES[name] as string);
      await using gate = await gateway('gateways: {}', { admin: true, folder: folder.path });
      const text = await problems(gate, name);
      expect(JSON.parse(text).valid).toBe(false);
      expect(text).toContain('the price catalog');
      for (const secret of SECRETS) expect(text).not.toContain(secret);
    },
  );

  test.skipIf(process.platform === 'win32')(
    'the admin validator does not block on a pipe or read a device endlessly',
    async () => {
      await using folder = await temporaryFolder();
      execFileSync('mkfifo', [join(folder.path, 'pipe')]);
      await using gate = await gateway('gateways: {}', { admin: true, folder: folder.path });
      for (const file of ['pipe', '/dev/zero', '.']) {
        const text = await problems(gate, file);
        expect(text).toContain('not a regular file');
      }
    },
  );
});
