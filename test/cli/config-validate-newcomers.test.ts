import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';

async function validate(policies: string, files: Readonly<Record<string, string>> = {}) {
  await using folder = await temporaryFolder();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder.path, name), text);
  const file = join(folder.path, 'gateway.yaml');
  writeFileSync(
    file,
    `gateways: { default: { port: 3000, routes: [{ policies: ${policies}, backends: [{ host: "127.0.0.1:80" }] }] } }\n`,
  );
  return await cli(['config', 'validate', '-o', 'json', file]);
}

const helps = (stdout: string): string[] =>
  JSON.parse(stdout).diagnostics.map(
    ({ message, help }: { message: string; help?: string }) => `${message} / ${help}`,
  );

test.each([
  [
    '{ basicAuthentication: {} }',
    'unknown field `basicAuthentication` / a field with a similar name exists: `basicAuth`',
  ],
  ['{ jwt: {} }', 'unknown field `jwt` / a field with a similar name exists: `jwtAuth`'],
  [
    '{ requestMirror: { backend: { host: "a:1" }, percent: 1 } }',
    'unknown field `percent` / a field with a similar name exists: `percentage`',
  ],
  ['{ timeouts: {} }', 'unknown field `timeouts` / a field with a similar name exists: `timeout`'],
  [
    '{ mcpAuthentcation: {} }',
    'unknown field `mcpAuthentcation` / a field with a similar name exists: `mcpAuthentication`',
  ],
])('the unknown keys of %s are corrected', async (policies, expected) => {
  expect(helps((await validate(policies)).stdout)).toContain(expected);
});

test('a shortened member of a variable is an error that names the whole one', async () => {
  const basicAuth = 'basicAuth: { mode: strict, htpasswd: "a:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=" }';
  const { code, stdout } = await validate(
    `{ ${basicAuth}, authorization: { rules: ['basicAuth.user == "a"'] } }`,
  );
  expect([code, helps(stdout)]).toEqual([
    1,
    ['`basicAuth` has no member `user` / a member with a similar name exists: `basicAuth.username`'],
  ]);
});

test.each([
  ['{"foo":"some-secret"}', 'keys.json has no `keys` list'],
  ['[]', 'keys.json has no `keys` list'],
  ['some-secret', 'keys.json'],
])('the file of a key set with %j is an error that does not quote it', async (content, message) => {
  for (const policy of ['jwtAuth', 'mcpAuthentication']) {
    const { code, stdout } = await validate(
      `{ ${policy}: { mode: strict, issuer: "https://a.example", audiences: [x], jwks: { file: keys.json } } }`,
      { 'keys.json': content },
    );
    expect([code, stdout]).toEqual([1, expect.stringContaining(message)]);
    expect(stdout).toContain('no token could be validated');
    expect(stdout).not.toContain('some-secret');
  }
});

test('a key set in the configuration without `keys` is an error', async () => {
  const { code, stdout } = await validate(
    `{ jwtAuth: { mode: strict, issuer: "https://a.example", audiences: [x], jwks: '{}' } }`,
  );
  expect([code, helps(stdout)]).toEqual([1, [expect.stringContaining('the key set has no `keys` list')]]);
});

test('a mapping with the keys of an entry is where a list is expected', async () => {
  const found = helps((await validate('{ localRateLimit: { maxTokens: 10, fillInterval: 1m } }')).stdout);
  expect(found).toEqual([expect.stringMatching(/^expected a list, found a mapping \/ write a list: /)]);
});

test('a missing file of users is named as it is written, and inline users are masked', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'gateway.yaml');
  const of = async (htpasswd: string) => {
    writeFileSync(
      file,
      `routes: [{ policies: { basicAuth: { mode: strict, htpasswd: ${htpasswd} }, directResponse: {} } }]\n`,
    );
    return (await cli(['config', 'validate', file])).stderr;
  };
  const missing = await of('{ file: no-users }');
  expect(missing).toContain(`file not found: ${join(folder.path, 'no-users')}`);
  expect(missing).toContain('htpasswd: { file: no-users }');
  expect(await of('"ann:plain-password"')).not.toContain('plain-password');
});

test('a configuration with another name is found', async () => {
  await using folder = await temporaryFolder();
  writeFileSync(join(folder.path, 'gateway.yaml'), 'routes: []\n');
  const { code, stderr } = await cli(['config', 'validate', 'gatway.yaml'], { cwd: folder.path });
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining(
      'no such file: gatway.yaml\n  ┌─ gatway.yaml:1:1\n  = help: did you mean gateway.yaml?',
    ),
  ]);
});
