import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { cli } from '../../kit/cli.ts';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { gateway } from '../../kit/gateway.ts';
import { AGCTL } from '../../kit/process.ts';
import { traceServer } from '../../kit/trace.ts';

// Runs the commands of the help and the documentation in a shell.

const run = promisify(execFile);
const DOCS = readFileSync(new URL('../../../docs/trace.md', import.meta.url), 'utf8');

/** The command in a text that begins with `start` and continues while lines end in `\` or a quote is open. */
function commandIn(text: string, start: string): string {
  const lines = text.slice(text.indexOf(start)).split('\n');
  const isWhole = (command: string): boolean =>
    !command.endsWith('\\') && command.split("'").length % 2 === 1;
  let command = lines.shift() ?? '';
  while (!isWhole(command) && lines.length > 0) command += `\n${lines.shift()}`;
  return command;
}

const typed = (command: string): Promise<{ stdout: string; stderr: string }> =>
  run('sh', ['-c', command], { timeout: 20_000 });

test('the example request on the waiting screen works as printed', async () => {
  await using gate = await gateway(mcpConfig([chaos('a', '--tools=echo')]));
  const curl = commandIn(DOCS, 'curl -sS <gateway>/mcp');
  expect((await typed(curl.replace('<gateway>', gate.url))).stdout).toContain('"serverInfo"');
});

test.each([
  ['the help', async () => (await cli(['proxy', 'trace', '--help'])).stdout],
  ['the documentation', async () => DOCS],
])('the request that agctl sends with %s is answered with 200', async (_, text) => {
  await using gate = await gateway(mcpConfig([chaos('a', '--tools=echo')]));
  await using admin = await traceServer(gate.running);
  const example = commandIn(await text(), 'agctl proxy trace -- http://127.0.0.1:3000/mcp');
  const command = example
    .replace('agctl', `'${process.execPath}' '${AGCTL}'`)
    .replace('trace --', `trace --admin 127.0.0.1:${admin.port} --`)
    .replace('http://127.0.0.1:3000', gate.url);
  const { stdout, stderr } = await typed(command);
  expect(stderr).toContain('reply 200 OK');
  expect(stdout).toContain('initialize');
});
