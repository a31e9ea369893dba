import {
  appendFileSync,
  closeSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { AUDIENCE, startIdp } from '../../kit/idp.ts';
import { freePort } from '../../kit/ports.ts';
import { serve } from '../../kit/process.ts';
import { routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';

const config = (body: string): string =>
  routesConfig([{ name: 'a', policies: { directResponse: { body } } }]);
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const logged = (gate: TestGateway, what: string): number =>
  gate.log.filter((line) => line.includes(what)).length;
/** Log lines about successful and failed reloads, and their warnings. */
const reloads = (gate: TestGateway): number =>
  gate.log.filter((line) => /\t(?:info|warn|error)\tagctl::reload\t/.test(line)).length;
const serves = (gate: TestGateway, body: string): Promise<void> =>
  until(async () => (await send(gate.url)).text === body, 2_000);

/** A gateway that watches `test.yaml` in a folder. */
async function watched(): Promise<{ gate: TestGateway; file: string; folder: string } & AsyncDisposable> {
  const folder = await temporaryFolder();
  const gate = await gateway(config('0'), { folder: folder.path, live: 'watched' });
  return {
    gate,
    file: join(folder.path, 'test.yaml'),
    folder: folder.path,
    async [Symbol.asyncDispose]() {
      await gate.close();
      await folder.remove();
    },
  };
}

describe.concurrent('changes of the configuration file', () => {
  test.each<[string, (file: string, text: string) => unknown]>([
    ['written in place', (file, text) => writeFileSync(file, text)],
    [
      'renamed over',
      (file, text) => {
        writeFileSync(`${file}.new`, text);
        renameSync(`${file}.new`, file);
      },
    ],
    [
      'deleted and made again',
      (file, text) => {
        unlinkSync(file);
        writeFileSync(file, text);
      },
    ],
    [
      'as an editor does, with a backup',
      (file, text) => {
        renameSync(file, `${file}~`);
        writeFileSync(file, text);
        unlinkSync(`${file}~`);
      },
    ],
    [
      'emptied, and written a moment later',
      async (file, text) => {
        writeFileSync(file, '');
        await pause(100);
        appendFileSync(file, text);
      },
    ],
  ])('every change of a configuration file causes one reload: %s', async (_, write) => {
    await using it = await watched();
    await write(it.file, config('1'));
    await serves(it.gate, '1');
    await write(it.file, config('2'));
    await serves(it.gate, '2');
    expect([logged(it.gate, 'configuration reloaded'), logged(it.gate, 'Failed')]).toEqual([2, 0]);
  });

  test('a configuration file that is written slowly is reloaded only when it is complete', async () => {
    await using it = await watched();
    const file = openSync(it.file, 'w');
    for (const letter of `${config('slow')}\n`) {
      writeSync(file, letter);
      await pause(10);
    }
    closeSync(file);
    await serves(it.gate, 'slow');
    expect([logged(it.gate, 'configuration reloaded'), logged(it.gate, 'Failed')]).toEqual([1, 0]);
  });

  test('a changed symbolic link, as in a mounted ConfigMap, causes a reload', async () => {
    await using folder = await temporaryFolder();
    const version = (name: string): void => {
      mkdirSync(join(folder.path, name));
      writeFileSync(join(folder.path, name, 'gateway.yaml'), config(name));
      symlinkSync(name, join(folder.path, '..data_tmp'));
      renameSync(join(folder.path, '..data_tmp'), join(folder.path, '..data'));
    };
    version('..1');
    symlinkSync('..data/gateway.yaml', join(folder.path, 'gateway.yaml'));
    await using gate = await gateway(config('..1'), {
      folder: folder.path,
      live: 'watched',
      file: 'gateway.yaml',
    });
    version('..2');
    rmSync(join(folder.path, '..1'), { recursive: true });
    await serves(gate, '..2');
    version('..3');
    await serves(gate, '..3');
    writeFileSync(join(folder.path, '..3', 'gateway.yaml'), config('in place'));
    await serves(gate, 'in place');
  });

  test('a configuration file in a folder that was deleted and recreated causes a reload', async () => {
    await using it = await watched();
    rmSync(it.folder, { recursive: true });
    await until(() => logged(it.gate, 'Failed to reload config: test.yaml cannot be read') === 1);
    mkdirSync(it.folder);
    writeFileSync(it.file, config('back'));
    await until(async () => (await send(it.gate.url)).text === 'back', LIMITS.watchPollInterval + 2_000);
  });
});

describe('no reload', () => {
  test('touching the file, writing the same content and other files of the folder cause no reload', async () => {
    await using it = await watched();
    for (let count = 0; count < 10_000; count += 1) utimesSync(it.file, count, count);
    writeFileSync(it.file, config('0'));
    for (let count = 0; count < 100; count += 1) appendFileSync(join(it.folder, 'other.log'), 'line\n');
    await pause(LIMITS.reloadDebounce + 3 * LIMITS.watchDebounce);
    writeFileSync(it.file, config('1'));
    await serves(it.gate, '1');
    expect(reloads(it.gate)).toBe(1);
    expect(logged(it.gate, 'files have changed\tfiles=')).toBeGreaterThan(0);
    expect(logged(it.gate, 'read, checked and compiled')).toBe(1);
  });
});

describe('referenced files', () => {
  test('a changed price catalog is reloaded: an invalid one is rejected, and a later valid one is loaded', async () => {
    await using folder = await temporaryFolder();
    const catalog = join(folder.path, 'prices.json');
    const prices = (rate: string): string =>
      JSON.stringify({ providers: { p: { models: { m: { rates: { input: rate, output: '1' } } } } } });
    writeFileSync(catalog, prices('1'));
    const yaml = routesConfig([{ policies: { directResponse: { body: 'x' } } }], {
      config: { modelCatalog: [{ file: 'prices.json' }] },
    });
    await using gate = await gateway(yaml, { folder: folder.path, live: 'watched' });
    const first = gate.live.served.runtime.catalog;
    writeFileSync(catalog, prices('-1'));
    await until(() => logged(gate, 'Failed to reload config') === 1);
    expect(gate.live.served.runtime.catalog).toBe(first);
    writeFileSync(catalog, prices('2'));
    await until(() => logged(gate, 'sections="config.modelCatalog"') === 1);
    expect(gate.live.state.isSynchronized).toBe(true);
  });

  test('an unreadable key set file leaves the keys unchanged and is logged once', async () => {
    await using folder = await temporaryFolder();
    await using idp = await startIdp();
    const keys = join(folder.path, 'keys.json');
    const good = JSON.stringify({ keys: [idp.key.jwk] });
    writeFileSync(keys, good);
    const mcpAuthentication = {
      issuer: idp.issuer,
      audiences: [AUDIENCE],
      jwks: { file: 'keys.json' },
      resourceMetadata: { resource: 'http://localhost/mcp' },
    };
    const policies = { mcpAuthentication, directResponse: { body: 'in' } };
    await using gate = await gateway(routesConfig([{ policies }]), { folder: folder.path, live: 'watched' });
    const headers = { authorization: `Bearer ${idp.token()}` };
    const status = async (): Promise<number> => (await send(gate.url, { headers })).status;
    expect(await status()).toBe(200);
    writeFileSync(keys, '{');
    await until(() => logged(gate, 'signing keys could not be read') === 1);
    expect(await status()).toBe(200);
    writeFileSync(keys, '{"keys":[]}');
    await until(async () => (await status()) === 401);
    writeFileSync(keys, good);
    await until(async () => (await status()) === 200);
    expect([logged(gate, 'could not be read'), reloads(gate)]).toEqual([1, 0]);
  });
});

describe('agctl proxy and reloads', () => {
  test('a gateway with its configuration from standard input logs a reload signal and goes on', async () => {
    await using running = await serve('', { args: ['-f', '-'], input: config('in') });
    running.kill('SIGHUP');
    await until(() => running.stderr.includes('a configuration from standard input cannot be reloaded'));
    expect((await send(running.url)).text).toBe('in');
  });

  test('many reload signals in quick succession cause few reloads', async () => {
    await using running = await serve(config('0'));
    for (let count = 0; count < 200; count += 1) running.kill('SIGHUP');
    await until(() => running.stderr.includes('configuration reloaded'));
    running.kill('SIGTERM');
    await running.finished;
    expect(running.stderr.split('configuration reloaded').length).toBeLessThan(50);
  });

  test('with --no-watch the gateway reloads only on SIGHUP', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'c.yaml');
    writeFileSync(file, config('1'));
    await using running = await serve(config('0'), { args: ['-f', file, '--no-watch'] });
    writeFileSync(file, config('2'));
    await pause(LIMITS.reloadDebounce + 3 * LIMITS.watchDebounce);
    expect((await send(running.url)).text).toBe('1');
    running.kill('SIGHUP');
    await until(() => running.stderr.includes('configuration reloaded'));
    expect((await send(running.url)).text).toBe('2');
    running.kill('SIGTERM');
    expect((await running.finished).code).toBe(0);
  });

  test('the gateway watches its file, becomes ready even if the file becomes invalid, and stops', async () => {
    const [readiness, stats] = [await freePort(), await freePort()];
    const env = { READINESS_ADDR: `127.0.0.1:${readiness}`, STATS_ADDR: `127.0.0.1:${stats}` };
    await using running = await serve(config('0'), { env });
    const [file] = /\/\S*agctl-serve-\S*config\.yaml/.exec(running.stderr) ?? [];
    writeFileSync(file as string, config('1'));
    await until(() => running.stderr.includes('configuration reloaded'));
    expect((await send(running.url)).text).toBe('1');
    writeFileSync(file as string, 'gateways: 7');
    await until(() => running.stderr.includes('Failed to reload config: '));
    expect((await send(`http://127.0.0.1:${readiness}/healthz/ready`)).status).toBe(200);
    expect((await send(`http://127.0.0.1:${stats}/metrics`)).text).toContain('gw_config_synchronized 0');
    running.kill('SIGTERM');
    expect((await running.finished).code).toBe(0);
  });
});
