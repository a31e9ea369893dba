import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { parseEnv } from 'node:util';
import { describe, expect, test } from 'vitest';
import { cli } from '../kit/cli.ts';
import { chaos } from '../kit/config.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { openSession } from '../kit/mcp.ts';
import { service } from '../kit/process.ts';
import { npmPackage, serverJson } from '../kit/server-json.ts';
import { until } from '../kit/until.ts';

const CHAOS = join(import.meta.dirname, '../kit/chaos-child.mjs');

/** A folder with a configuration of these targets and a server.json, and an `npx` that starts a server which needs API_KEY. */
async function project(targets: readonly object[], mcp: object = {}) {
  const folder = await temporaryFolder();
  const cwd = folder.path;
  const environmentVariables = [{ name: 'API_KEY', isRequired: true, isSecret: true }];
  const write = (name: string, content: object): void =>
    writeFileSync(join(cwd, name), JSON.stringify(content));
  write('server.json', serverJson({ packages: [npmPackage({ environmentVariables })] }));
  write('free.json', serverJson());
  write('gateway.yaml', {
    config: { connectionTerminationDeadline: '100ms' },
    gateways: { default: { port: 0, address: '127.0.0.1' } },
    mcp: { ...mcp, targets },
  });
  mkdirSync(join(cwd, 'bin'));
  const npx = `#!/bin/sh\nprintf '%s\\n' "$API_KEY" >>"${cwd}/keys"\nexec "${process.execPath}" "${CHAOS}" --tools=forecast\n`;
  writeFileSync(join(cwd, 'bin/npx'), npx, { mode: 0o755 });
  const env = { HOME: cwd, PATH: [join(cwd, 'bin'), '/usr/bin', '/bin'].join(delimiter) };
  return {
    cwd,
    env,
    add: (...args: string[]) => cli(['add', ...args], { cwd, env }),
    read: (name: string): string => readFileSync(join(cwd, name), 'utf8'),
    [Symbol.asyncDispose]: folder[Symbol.asyncDispose],
  };
}

test('a running gateway does not start a new server before its key is filled in, and does at once after that', async () => {
  await using mine = await project([chaos('one', '--tools=echo')]);
  const { cwd, env } = mine;
  await using gateway = await service(['serve'], { cwd, env });
  const tools = async (): Promise<string[]> => {
    const session = await openSession(`${gateway.url}/mcp`);
    const { result } = await session.request('tools/list');
    return result.tools.map(({ name }: { name: string }) => name);
  };
  const { code, stdout } = await mine.add('weather', '--from', 'server.json');
  expect(code).toBe(0);
  expect(stdout).toContain(
    'fill in WEATHER_API_KEY in gateway.env: until then, a running gateway keeps the former configuration',
  );
  await until(() => gateway.stderr.includes('WEATHER_API_KEY'));
  expect(await tools()).toEqual(['echo']);
  const text = mine.read('gateway.env');
  expect(parseEnv(text)).toEqual({});
  writeFileSync(join(cwd, 'gateway.env'), text.replace('# WEATHER_API_KEY=', 'WEATHER_API_KEY=right'));
  await until(async () => (await tools()).includes('weather_forecast'));
  expect(await tools()).toEqual(['one_echo', 'weather_forecast']);
  expect(new Set(mine.read('keys').trim().split('\n'))).toEqual(new Set(['right']));
});

describe('names of tools that a second server changes', () => {
  const NOTE = 'note     with two targets, tools of one are named one_…, and those of weather weather_…';
  const one = { name: 'one', stdio: { cmd: 'true' } };

  test.each([
    ['the second target', [one], {}, `${NOTE}; \`prefixMode: never\` in the \`mcp\` section keeps the names`],
    [
      'it, where the names are written',
      [one],
      { toolSearch: { pinned: ['echo'] } },
      `${NOTE}, also in \`toolSearch\`;`,
    ],
  ])('add says so for %s', async (_what, targets, mcp, text) => {
    await using mine = await project(targets, mcp);
    const { code, stdout } = await mine.add('weather', '--from', 'free.json');
    expect(code).toBe(0);
    expect(stdout).toContain(text);
  });

  test.each([
    ['the first target', [], {}],
    ['the third target', [one, { ...one, name: 'two' }], {}],
    ['names that always had a prefix', [one], { prefixMode: 'always' }],
    ['names that never have one', [one], { prefixMode: 'never' }],
  ])('add says nothing for %s', async (_what, targets, mcp) => {
    await using mine = await project(targets, mcp);
    const { code, stdout } = await mine.add('weather', '--from', 'free.json', '-f', './gateway.yaml');
    expect(code).toBe(0);
    expect(stdout).not.toContain('are named');
    expect(stdout).toMatch(/ serve -f \.\/gateway\.yaml +a running gateway/);
  });
});
