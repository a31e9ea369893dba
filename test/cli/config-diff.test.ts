import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { serve } from '../kit/process.ts';

const OLD = `
gateways: { default: { port: 3000 } }
mcp:
  targets:
    - { name: a, stdio: { cmd: x, args: [-y, one] } }
    - { name: b, mcp: { host: "http://b.example/mcp" }, policies: { backendAuth: { key: literal-secret-1 } } }
llm:
  models:
    - { name: m, provider: oaiCompat, params: { apiKey: $KEY } }
`;
const NEW = `
# another order, and a default written out
llm:
  models:
    - params: { apiKey: $OTHER }
      name: m
      provider: oaiCompat
      visibility: public
mcp:
  failureMode: failClosed
  prefixMode: conditional
  targets:
    - { name: b, mcp: { host: "http://b.example/mcp" }, policies: { backendAuth: { key: literal-secret-2 } } }
    - { name: c, stdio: { cmd: y, env: { TOKEN: literal-secret-3 } } }
    - { name: a, stdio: { cmd: x, args: [-y, two] } }
gateways: { default: { port: 3001 } }
`;

async function files(...texts: readonly string[]) {
  const folder = await temporaryFolder();
  for (const [index, text] of texts.entries()) writeFileSync(join(folder.path, `${index}.yaml`), text);
  return { ...folder, [Symbol.asyncDispose]: folder[Symbol.asyncDispose] };
}

const env = { KEY: 'env-secret-1', OTHER: 'env-secret-2' };

test('diff shows what differs in meaning between two files, entries by name, without secrets', async () => {
  await using folder = await files(OLD, NEW);
  const { code, stdout, stderr } = await cli(['config', 'diff', '0.yaml', '1.yaml'], {
    cwd: folder.path,
    env,
  });
  expect(stdout.split('\n').filter(Boolean)).toEqual([
    '~ gateways.default.port: 3000 -> 3001',
    '~ mcp.targets[a].stdio.args[1]: "one" -> "two"',
    '~ mcp.targets[b].policies.backendAuth.key: "<redacted>" -> "<redacted>"',
    '+ mcp.targets[c]: {"name":"c","stdio":{"cmd":"y","env":{"TOKEN":"<redacted>"}}}',
    '~ mcp.targets: order ["a","b"] -> ["b","c","a"]',
    '+ mcp.failureMode: "failClosed"',
    '~ llm.models[m].params.apiKey: "$KEY" -> "$OTHER"',
  ]);
  expect([code, stderr]).toEqual([1, '0.yaml and 1.yaml: 7 differences\n']);
  expect(stdout).not.toMatch(/secret-\d/);
  const json = await cli(['config', 'diff', '0.yaml', '1.yaml', '-o', 'json'], { cwd: folder.path, env });
  expect(JSON.parse(json.stdout)[0]).toEqual({
    kind: 'changed',
    path: 'gateways.default.port',
    before: 3000,
    after: 3001,
  });
  expect(json.stdout).not.toMatch(/secret-\d/);
});

test('diff of a file with itself in another notation is empty, with exit code 0', async () => {
  await using folder = await files(
    OLD,
    `# comment\n${JSON.stringify({ config: {} })}`.replace('{"config":{}}', OLD),
  );
  const { code, stdout, stderr } = await cli(['config', 'diff', '0.yaml', '1.yaml'], {
    cwd: folder.path,
    env,
  });
  expect([code, stdout, stderr]).toEqual([0, '', '0.yaml and 1.yaml: no difference\n']);
});

test('diff against a running gateway shows what a reload would change', async () => {
  await using folder = await temporaryFolder();
  const admin = `unix:${join(folder.path, 'admin.sock')}`;
  const text = (status: number, key: string): string =>
    `config: { adminAddr: "${admin}" }\ngateways: { default: { port: 0, routes: [{ policies: { directResponse: { status: ${status} }, apiKey: { keys: [{ key: ${key} }] } } }] } }\n`;
  await using _gateway = await serve(text(200, 'served-secret'), { env: { ADMIN_ADDR: undefined } });
  writeFileSync(join(folder.path, 'same.yaml'), text(200, 'other-secret'));
  writeFileSync(join(folder.path, 'new.yaml'), text(404, 'other-secret'));
  const same = await cli(['config', 'diff', 'same.yaml', '--admin', admin], { cwd: folder.path });
  expect([same.code, same.stdout]).toEqual([0, '']);
  expect(same.stderr).toContain('secrets cannot be compared');
  const changed = await cli(['config', 'diff', 'new.yaml', 'running', '--admin', admin], {
    cwd: folder.path,
  });
  expect([changed.code, changed.stdout]).toEqual([
    1,
    '~ gateways.default.routes[0].policies.directResponse.status: 200 -> 404\n',
  ]);
});

test('diff against a running gateway needs no values of variables', async () => {
  await using folder = await temporaryFolder();
  const admin = `unix:${join(folder.path, 'admin.sock')}`;
  const text = `config: { adminAddr: "${admin}" }
gateways: { default: { port: 0, address: 127.0.0.1 } }
mcp: { targets: [{ name: notes, stdio: { cmd: node, env: { NOTES_TOKEN: "\${NOTES_TOKEN}" } } }] }
`;
  await using _gateway = await serve(text, {
    env: { ADMIN_ADDR: undefined, NOTES_TOKEN: 'secret-of-notes' },
  });
  writeFileSync(join(folder.path, 'same.yaml'), text);
  expect(
    await cli(['config', 'diff', 'same.yaml', 'running', '--admin', admin], { cwd: folder.path }),
  ).toMatchObject({ code: 0, stdout: '' });
});

test.each([
  [['0.yaml', 'no.yaml'], 2, 'no such file: no.yaml'],
  [['0.yaml', 'running', '--admin', 'unix:/nowhere.sock'], 3, '/nowhere.sock'],
  [['0.yaml', '1.yaml'], 1, '1.yaml is not valid YAML'],
])('diff %j exits with %i', async (args, code, message) => {
  await using folder = await files(OLD, 'a: [');
  const ran = await cli(['config', 'diff', ...args], { cwd: folder.path, env });
  expect([ran.code, ran.stderr]).toEqual([code, expect.stringContaining(message)]);
});

test('diff shows a key that has the name of a member of every object', async () => {
  const env = (name: string) => `mcp: { targets: [{ name: a, stdio: { cmd: x, env: { ${name}: y } } }] }\n`;
  await using folder = await files(env('A'), env('constructor'));
  const { code, stdout } = await cli(['config', 'diff', '0.yaml', '1.yaml'], { cwd: folder.path });
  expect([code, stdout.split('\n').filter(Boolean)]).toEqual([
    1,
    ['- mcp.targets[a].stdio.env.A: "<redacted>"', '+ mcp.targets[a].stdio.env.constructor: "<redacted>"'],
  ]);
});
