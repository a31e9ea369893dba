import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { busyPort } from '../kit/ports.ts';
import { serve, service } from '../kit/process.ts';
import { send } from '../kit/send.ts';
import { until } from '../kit/until.ts';
import { verifies } from '../kit/verifies.ts';

const gateways = { a: { port: 0, routes: [{ policies: { directResponse: { body: 'ok' } } }] } };
const yaml = (adminAddr?: string): string =>
  JSON.stringify({ config: adminAddr === undefined ? {} : { adminAddr }, gateways });

const PAGES = JSON.stringify({ gateways: { ...gateways, default: { port: 0 } }, ui: {} });

const adminOf = (stderr: string): string => /admin server +(http:\/\/[^/\s]+)\/ui/.exec(stderr)?.[1] ?? '';

describe('the admin server of `agctl serve`', () => {
  verifies(
    ['gateway.config.admin-addr', 'gateway.admin.quit', 'gateway.admin.ui'],
    'the admin server listens where the configuration says, is printed at startup, and stops the gateway on request',
    async () => {
      await using running = await serve(yaml('127.0.0.1:0'), { env: { ADMIN_ADDR: '' } });
      const url = adminOf(running.stderr);
      expect((await send(`${url}/ui`)).headers['content-type']).toBe('text/html; charset=utf-8');
      expect((await send(`${url}/quitquitquit`)).status).toBe(405);
      const { status, text } = await send(`${url}/quitquitquit`, { method: 'POST' });
      expect([status, text]).toEqual([200, 'shutdown now\n']);
      expect((await running.finished).code).toBe(0);
    },
  );

  test('--ui-write lets admin pages write the file, whose path is relative to the start folder', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'gate.yaml');
    writeFileSync(path, yaml('127.0.0.1:0'));
    const options = { env: { ADMIN_ADDR: '' }, cwd: folder.path };
    await using running = await service(['serve', '-f', 'gate.yaml', '--ui-write'], options);
    const url = adminOf(running.stderr);
    const { text, hash } = JSON.parse((await send(`${url}/api/config/file`)).text) as Record<string, string>;
    const body = JSON.stringify({ text: `# written\n${text}`, hash });
    expect((await send(`${url}/api/config`, { method: 'POST', body })).status).toBe(200);
    expect(readFileSync(path, 'utf8')).toBe(`# written\n${yaml('127.0.0.1:0')}`);
  });

  test('ADMIN_ADDR overrides the admin address of the configuration', async () => {
    await using running = await serve(yaml('off'), { env: { ADMIN_ADDR: '[::1]:0' } });
    expect(adminOf(running.stderr)).toMatch(/^http:\/\/\[::1\]:\d+$/);
    const { code, stderr } = await cli(['serve', '-f', '-'], {
      input: yaml(),
      env: { ADMIN_ADDR: 'example.com:1' },
    });
    expect([code, stderr]).toEqual([2, expect.stringContaining('ADMIN_ADDR is not an address: expected')]);
  });

  test.each([
    [
      'yes',
      '`ui` needs the admin server, and ADMIN_ADDR is not an address: expected `ip:port`',
      'or unset it',
    ],
    [
      'off',
      '`ui` needs the admin server, which is off (ADMIN_ADDR)',
      'set the environment variable ADMIN_ADDR',
    ],
  ])('with `ui`, the error about ADMIN_ADDR=%s names the variable', async (value, message, help) => {
    const { code, stderr } = await cli(['config', 'validate', '-'], {
      input: PAGES,
      env: { ADMIN_ADDR: value },
    });
    expect([code, stderr]).toEqual([1, expect.stringContaining(message)]);
    expect(stderr).toContain(help);
  });

  verifies(
    ['gateway.config.admin-addr.default', 'gateway.limits.admin-address'],
    'the default admin address is on loopback, and the gateway runs without it when it is in use',
    async () => {
      // Another process on this machine may already use the port, which serves the test as well.
      const taken = await busyPort('127.0.0.1', 15_000).catch(() => undefined);
      try {
        await using running = await serve(yaml(), { env: { ADMIN_ADDR: '' } });
        await until(() => running.stderr.includes('the admin server is disabled'));
        expect(running.stderr).toContain(
          'problem="the admin server cannot listen on 127.0.0.1:15000: the address is already in use"',
        );
        expect(running.stderr).toMatch(
          /commands without --admin reach .*: set config.adminAddr to another address, such as localhost:15001/,
        );
        expect((await send(running.url)).text).toBe('ok');
        const pages = await cli(['serve', '-f', '-'], { input: PAGES, env: { ADMIN_ADDR: '' } });
        expect([pages.code, pages.stderr]).toEqual([
          1,
          expect.stringContaining(
            'error[AGW0401]: `ui` needs the admin server: the admin server cannot listen',
          ),
        ]);
        expect(pages.stderr).not.toContain('started bind');
      } finally {
        await taken?.[Symbol.asyncDispose]();
      }
    },
  );

  test('a configured admin address in use is an error with its position', async () => {
    await using taken = await busyPort('127.0.0.1');
    const input = `config:\n  adminAddr: 127.0.0.1:${taken.port}\ngateways: ${JSON.stringify(gateways)}\n`;
    const { code, stderr } = await cli(['serve', '-f', '-'], { input, env: { ADMIN_ADDR: '' } });
    expect(code).toBe(1);
    expect(stderr).toContain(
      `error[AGW0401]: the admin server cannot listen on 127.0.0.1:${taken.port}: the address is already in use`,
    );
    expect(stderr).toContain('-:2:14');
    expect(stderr).not.toContain('started bind');
  });

  test('an invalid admin address is a configuration error', async () => {
    const { code, stderr } = await cli(['config', 'validate', '-'], { input: yaml('localhost') });
    expect(code).toBe(1);
    expect(stderr).toContain('expected `ip:port`, `localhost:port`, `:port`, `unix:/path` or `off`');
  });

  test('the admin socket permits only this user; a stale socket is replaced, another file is not', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'admin.sock');
    {
      await using running = await serve(yaml(`unix:${path}`), { env: { ADMIN_ADDR: '' } });
      expect(statSync(path).mode & 0o777).toBe(0o600);
      const status = await new Promise((resolve, reject) => {
        const call = request(
          { socketPath: path, path: '/logging', headers: { host: 'anything' } },
          (response) => {
            response.resume();
            resolve(response.statusCode);
          },
        );
        call.on('error', reject);
        call.end();
      });
      expect(status).toBe(200);
      // A second gateway must not take over the socket.
      const second = await cli(['serve', '-f', '-'], {
        input: yaml(`unix:${path}`),
        env: { ADMIN_ADDR: '' },
      });
      expect([second.code, second.stderr]).toEqual([1, expect.stringContaining('already in use')]);
      running.kill('SIGKILL');
    }
    expect(existsSync(path)).toBe(true);
    {
      await using running = await serve(yaml(`unix:${path}`), { env: { ADMIN_ADDR: '' } });
      expect(running.stderr).toContain(`admin server         unix:${path}`);
    }
    const file = join(folder.path, 'file');
    writeFileSync(file, 'mine');
    const { code, stderr } = await cli(['serve', '-f', '-'], {
      input: yaml(`unix:${file}`),
      env: { ADMIN_ADDR: '' },
    });
    expect([code, stderr]).toEqual([1, expect.stringContaining('is not a socket')]);
    expect(statSync(file).size).toBe(4);
  });

  test('an admin address that other machines can reach causes a warning', async () => {
    await using running = await serve(yaml('0.0.0.0:0'), { env: { ADMIN_ADDR: '' } });
    await until(() => running.stderr.includes('the admin server has no authentication'));
  });
});
