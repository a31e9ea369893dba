import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { replayCassette } from '../../src/library/testing/index.ts';
import { cli } from '../kit/cli.ts';
import { chaos, mcpConfig } from '../kit/config.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { openSession } from '../kit/mcp.ts';
import { freePort } from '../kit/ports.ts';
import { service } from '../kit/process.ts';
import { until } from '../kit/until.ts';
import { httpUpstream } from '../kit/upstream.ts';

const called = { name: 'echo', arguments: { message: 'hello' } };

async function callAt(url: string): Promise<unknown> {
  const session = await openSession(`${url}/mcp`);
  return (await session.request('tools/call', called)).result;
}

test('record serves a configuration until a signal, and replay answers at the same port without it', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'cassette.jsonl');
  const config = join(folder.path, 'gateway.yaml');
  const port = await freePort();
  const { gateways, ...rest } = JSON.parse(mcpConfig([chaos('a')]));
  // A configuration with workers is recorded in one process.
  const workers = { ...rest.config, workers: 2 };
  writeFileSync(
    config,
    JSON.stringify({ ...rest, config: workers, gateways: { default: { ...gateways.default, port } } }),
  );
  let recorded: unknown;
  {
    await using recording = await service(['record', '-f', config, '-o', file]);
    expect(recording.stderr).toContain(`recording to ${file}\n`);
    recorded = await callAt(`http://127.0.0.1:${port}`);
    recording.kill('SIGTERM');
    const { code, stderr } = await recording.finished;
    expect(code).toBe(0);
    expect(stderr).toMatch(/\n\d exchanges recorded in .*cassette\.jsonl\n$/);
  }
  expect(recorded).toMatchObject({ content: [{ type: 'text' }] });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  await using replay = await service(['replay', file]);
  expect(replay.url).toBe(`http://127.0.0.1:${port}`);
  expect(await callAt(replay.url)).toEqual(recorded);
  expect((await fetch(`${replay.url}/other`)).status).toBe(404);
  await until(() => replay.stderr.includes('GET /other is not in the cassette'));
  replay.kill('SIGTERM');
  expect(await replay.finished).toMatchObject({ code: 0, stdout: '' });
});

test('record says at once that its file is not complete, and what was recorded before it is killed can be replayed', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'cassette.jsonl');
  const config = join(folder.path, 'gateway.yaml');
  writeFileSync(config, mcpConfig([chaos('a')]));
  let recorded: unknown;
  {
    await using recording = await service(['record', '-f', config, '-o', file]);
    recorded = await callAt(recording.url);
    await until(() => readFileSync(file, 'utf8').includes('"tools/call"'));
    const whole = readFileSync(file);
    // As a full disk does, this makes the next exchange fail.
    writeFileSync(file, 'something else');
    await callAt(recording.url);
    await until(() => recording.stderr.includes(`${file} is not complete: another recording`));
    writeFileSync(file, whole);
    recording.kill('SIGKILL');
    await recording.finished;
  }
  await using replay = await replayCassette(file);
  expect(await callAt(replay.url)).toEqual(recorded);
});

test('record keeps an existing file, also with --force until the gateway has started', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'cassette.jsonl');
  const config = join(folder.path, 'gateway.yaml');
  writeFileSync(file, 'earlier');
  writeFileSync(config, 'gateways: { a: { prt: 1 } }');
  const refused = await cli(['record', '-f', config, '-o', file]);
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining(`${file} exists already`) });
  expect((await cli(['record', '-f', config, '-o', file, '--force'])).code).toBe(1);
  expect(readFileSync(file, 'utf8')).toBe('earlier');
  const other = join(folder.path, 'other.jsonl');
  const failed = await cli(['record', '-f', config, '-o', other]);
  expect(failed.code).toBe(1);
  expect(failed.stderr).not.toContain('recorded in');
  expect(statSync(other, { throwIfNoEntry: false })).toBeUndefined();
  const nowhere = await cli(['record', '-f', config, '-o', join(folder.path, 'no/folder.jsonl')]);
  expect(nowhere).toMatchObject({ code: 2, stderr: expect.stringContaining('cannot be written') });
});

test('replay refuses a broken file with its line, a path that is none, and a port that is none', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'cassette.jsonl');
  const head = {
    cassette: 1,
    agctl: '0.2.0',
    time: new Date(0).toISOString(),
    gateways: [{ name: 'a', port: 0 }],
  };
  writeFileSync(file, `${JSON.stringify(head)}\n{"at":"now"}\n`);
  expect(await cli(['replay', file])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`${file}:2: \`at\`: `),
  });
  writeFileSync(file, `${JSON.stringify(head)}\n`);
  expect(await cli(['replay', file, '--ignore', 'a..b'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--ignore a..b: expected a path such as'),
  });
  expect(await cli(['replay', file, '--port', '70000'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--port: expected 0 to 65535, found 70000'),
  });
  await using taken = await httpUpstream();
  expect(await cli(['replay', file, '--port', String(taken.port)])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`port ${taken.port} is already in use`),
  });
  expect(await cli(['replay', join(folder.path, 'none.jsonl')])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('no such file'),
  });
  expect(await cli(['replay', ''])).toMatchObject({ code: 2, stderr: expect.stringContaining('is empty') });
  // From standard input, it is read before the port is opened.
  const input = `${JSON.stringify(head)}\n{"at":"now"}\n`;
  expect(await cli(['replay', '-'], { input })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('standard input:2: `at`: '),
  });
});
