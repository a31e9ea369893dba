import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { mcpConfig } from '../../kit/config.ts';
import { everythingHttp, everythingStdio } from '../../kit/everything-target.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway } from '../../kit/gateway.ts';
import type { Json } from '../../kit/mcp.ts';
import { TARGETS } from '../report.ts';

const inspector = join(process.env['NODE_CLIENTS'] as string, 'node_modules/.bin/mcp-inspector');

describe.each(TARGETS)('$target', ({ transport, eras }) => {
  test.each(['legacy', 'auto', 'modern'])(
    'the Inspector in its era %s lists and calls tools, reads resources and gets prompts',
    async (era) => {
      await using home = await temporaryFolder();
      const target =
        transport === 'stdio'
          ? everythingStdio('everything', eras)
          : await everythingHttp('everything', eras);
      await using gate = await gateway(mcpConfig([target.config]));
      /** Resolves to the JSON that the Inspector prints; rejects if it does not exit with 0. */
      const run = async (method: string, ...more: string[]): Promise<Json> => {
        const server = ['--server-url', `${gate.url}/mcp`, '--transport', 'http', '--protocol-era', era];
        const args = [inspector, '--cli', ...server, '--method', method, ...more, '--format', 'json', '-q'];
        const env = { ...process.env, HOME: home.path, MCP_CATALOG_PATH: join(home.path, 'mcp.json') };
        const { stdout } = await promisify(execFile)(process.execPath, args, { env, timeout: 50_000 });
        return JSON.parse(stdout).result;
      };
      const [{ tools }, called, read, prompt] = await Promise.all([
        run('tools/list'),
        run('tools/call', '--tool-name', 'test_simple_text', '--tool-args-json', '{}'),
        run('resources/read', '--uri', 'test://static-text'),
        run('prompts/get', '--prompt-name', 'test_simple_prompt'),
      ]);
      await target.stop();
      expect(tools.map(({ name }: Json) => name)).toContain('test_simple_text');
      expect(JSON.stringify(called)).toContain('plain text from the fixture');
      expect(JSON.stringify(read)).toContain('text of a resource');
      expect(JSON.stringify(prompt)).toContain('a prompt without arguments');
    },
  );
});
