import { spawnSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../kit/folder.ts';
import { freePort } from '../kit/ports.ts';
import { AGCTL } from '../kit/process.ts';
import { send } from '../kit/send.ts';
import { hasTerminal, type Terminal, terminal } from '../kit/terminal.ts';

const folder = await temporaryFolder();
afterAll(() => folder.remove());

const configOf = (port: number, more: object = {}): string =>
  JSON.stringify({
    config: { adminAddr: 'off', statsAddr: 'off', readinessAddr: 'off', ...more },
    frontendPolicies: { accessLog: { add: { agent: 'request.headers["x-agent"]' } } },
    gateways: {
      default: {
        port,
        address: '127.0.0.1',
        routes: [
          {
            name: 'good',
            matches: [{ path: { exact: '/good' } }],
            policies: { directResponse: { body: 'ok' } },
          },
          { name: 'bad', matches: [{ path: { exact: '/bad' } }], backends: [{ host: '127.0.0.1:1' }] },
        ],
      },
    },
  });

/** Serves on a terminal; gives the address. */
async function served(
  term: Terminal,
  args: readonly string[] = [],
  environment = '',
  more = {},
): Promise<string> {
  const port = await freePort();
  const file = join(folder.path, `config${port}.json`);
  await writeFile(file, configOf(port, more));
  await term.agctl(['serve', '-f', file, ...args], environment);
  await term.shows('ready in ');
  return `http://127.0.0.1:${port}`;
}

/** The state of a process as `ps` has it: empty if there is none, `Z` if nobody has asked for its exit code. */
const stateOf = (pid: string): string =>
  spawnSync('ps', ['-o', 'stat=', '-p', pid], { encoding: 'utf8' }).stdout.trim().slice(0, 1);

describe.skipIf(!hasTerminal)('serve on a terminal', { timeout: 60_000 }, () => {
  test('serve on a terminal shows the banner first, then one short coloured line for each request', async () => {
    await using term = await terminal({ columns: 100 });
    const url = await served(term);
    await term.shows('started bind');
    await send(`${url}/good`, { headers: { 'x-agent': 'curl "x"' } });
    await send(`${url}/missing`);
    await send(`${url}/bad`);
    const screen = await term.shows(/^\d\d:\d\d:\d\d ✗ 503 +\d.*GET \/bad/m);
    const lines = screen.split('\n').filter((line) => line !== '');
    const banner = lines.findIndex((line) => line.startsWith('ready in '));
    expect(lines.findIndex((line) => line.includes('started bind'))).toBeGreaterThan(banner);
    expect(screen).toMatch(/^\d\d:\d\d:\d\d ✓ 200 +<?\d+ms {2}GET \/good · agent=curl "x" · default\/good$/m);
    expect(screen).toMatch(/^\d\d:\d\d:\d\d ! 404 +<?\d+ms {2}GET \/missing · route not found/m);
    expect(await term.styled()).toContain('\u001b[32m✓ 200');
    expect(await term.styled()).toContain('\u001b[31m✗ 503');
    await term.press('C-c');
    await term.shows('code 0');
  });

  test('serve on a terminal with two workers, NO_COLOR and 60 columns writes plain lines that fit', async () => {
    await using term = await terminal({ columns: 60 });
    const url = await served(term, [], 'NO_COLOR=1', { workers: 2 });
    await send(`${url}/good?${'x'.repeat(200)}`);
    const screen = await term.shows(/✓ 200/);
    expect(screen).toMatch(/^\d\d:\d\d:\d\d ✓ 200 +<?\d+ms {2}GET \/good\?x+…$/m);
    expect(await term.styled()).not.toContain('\u001b[3');
    await term.press('C-c');
    await term.shows('code 0');
  });

  test('serve on a terminal writes JSON lines if the configuration says so', async () => {
    await using term = await terminal({ columns: 200 });
    const port = await freePort();
    const file = join(folder.path, 'json.json');
    await writeFile(file, configOf(port, { logging: { format: 'json' } }));
    await term.agctl(['serve', '-f', file]);
    await term.shows('"message":"ready"');
    await send(`http://127.0.0.1:${port}/good`);
    await term.shows(/"http.status":200/);
    await term.press('C-c');
    await term.shows('code 0');
  });

  test('serve on a terminal whose stdout is a pipe writes the text format there', async () => {
    await using term = await terminal({ columns: 200 });
    const port = await freePort();
    const file = join(folder.path, 'pipe.json');
    await writeFile(file, configOf(port));
    await term.press(`${process.execPath} ${AGCTL} serve -f ${file} | cat`, 'Enter');
    await term.shows('ready in ');
    await send(`http://127.0.0.1:${port}/good`);
    await term.shows(/Z\s+info\s+request gateway=/);
    await term.press('C-c');
  });

  /** Serves in a shell, through `pipe`; gives the id of the process. */
  async function servedBy(term: Terminal, pipe: string): Promise<string> {
    const port = await freePort();
    const file = join(folder.path, `process${port}.json`);
    await writeFile(file, configOf(port));
    const command = `echo $$ >${file}.pid; exec ${process.execPath} ${AGCTL} serve -f ${file}`;
    await term.press(`sh -c '${command}'${pipe}`, 'Enter');
    await term.shows('ready in ');
    const pid = (await readFile(`${file}.pid`, 'utf8')).trim();
    expect(stateOf(pid)).toMatch(/^[RSD]$/);
    return pid;
  }

  test.each([
    ['', ''],
    [' into a pipe', ' | cat'],
  ])('serve%s ends when its terminal is closed', async (_where, pipe) => {
    let pid: string;
    {
      await using term = await terminal({ columns: 200 });
      pid = await servedBy(term, pipe);
    }
    await expect.poll(() => stateOf(pid), { timeout: 10_000 }).toMatch(/^Z?$/);
  });

  test('serve on a terminal that Ctrl-S has stopped ends after SIGTERM', async () => {
    await using term = await terminal({ columns: 200 });
    const pid = await servedBy(term, '');
    await term.press('C-s');
    process.kill(Number(pid), 'SIGTERM');
    await expect.poll(() => stateOf(pid), { timeout: 10_000 }).toMatch(/^Z?$/);
  });
});
