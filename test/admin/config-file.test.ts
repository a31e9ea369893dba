import {
  chmodSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway, type TestGateway } from '../kit/gateway.ts';
import { send } from '../kit/send.ts';

const YAML = `# our gateway   # an old apiKey: sk-older-1
config: {adminAddr: off, tracing: {otlpEndpoint: 'http://user:pass-word@127.0.0.1:9'}}
gateways:
  edge:
    port: 0   # any
    routes:
      - policies:
          directResponse: {body: hello}
          apiKey: {keys: [{key: client-key-123456}, {key: "client-key-123456"}]}
llm:
  port: 0
  models:
    - name: small
      provider: oaiCompat
      params: {baseUrl: 'http://127.0.0.1:9/v1', apiKey: sk-live-abcdef123456}
`;

interface File {
  readonly text: string;
  readonly loaded: string;
  readonly hash: string;
  readonly problem: string | null;
  readonly readOnly: string | null;
}

const read = async (running: TestGateway): Promise<File> =>
  JSON.parse((await send(`${running.admin}/api/config/file`)).text) as File;

const save = (running: TestGateway, text: string, hash: string) =>
  send(`${running.admin}/api/config`, { method: 'POST', body: JSON.stringify({ text, hash }) });

const start = async (folder: string): Promise<TestGateway> =>
  gateway(YAML, { admin: true, uiWrite: true, folder });

test('the configuration file is shown with placeholders for secrets and saved with its original secrets and comments', async () => {
  await using folder = await temporaryFolder();
  await using running = await start(folder.path);
  const path = join(folder.path, 'test.yaml');
  chmodSync(path, 0o640);
  const file = await read(running);
  expect(file.text).not.toMatch(/client-key|sk-live|pass-word|sk-older/);
  expect(file.text).toContain('{key: <redacted:3>}, {key: <redacted:4>}');
  expect(file.loaded).toBe(file.text);
  const saved = await save(running, file.text.replace('body: hello', 'body: changed'), file.hash);
  expect([saved.status, saved.text]).toEqual([200, expect.stringContaining('restart')]);
  expect(readFileSync(path, 'utf8')).toBe(YAML.replace('body: hello', 'body: changed'));
  expect(statSync(path).mode & 0o777).toBe(0o640);
  expect(readdirSync(folder.path)).toEqual(['test.yaml']);
  // The active configuration has not changed, and the page can see that.
  expect((await send(running.url, { headers: { authorization: 'Bearer client-key-123456' } })).text).toBe(
    'hello',
  );
  const after = await read(running);
  expect([after.text.includes('changed'), after.loaded.includes('hello')]).toEqual([true, true]);
  expect(after.hash).toBe((JSON.parse(saved.text) as File).hash);
});

test('saving the configuration file through a symbolic link keeps the link', async () => {
  await using folder = await temporaryFolder();
  await using running = await start(folder.path);
  const path = join(folder.path, 'test.yaml');
  const real = join(folder.path, 'real.yaml');
  writeFileSync(real, YAML);
  unlinkSync(path);
  symlinkSync('real.yaml', path);
  const file = await read(running);
  expect((await save(running, `${file.text}# end\n`, file.hash)).status).toBe(200);
  expect(lstatSync(path).isSymbolicLink()).toBe(true);
  expect(readFileSync(real, 'utf8')).toBe(`${YAML}# end\n`);
});

test('saving the configuration file is rejected without serve --ui-write', async () => {
  await using folder = await temporaryFolder();
  await using running = await gateway(YAML, { admin: true, uiWrite: false, folder: folder.path });
  const file = await read(running);
  expect(file.readOnly).toContain('--ui-write');
  const answer = await save(running, `${file.text}# more\n`, file.hash);
  expect([answer.status, answer.text]).toEqual([403, expect.stringContaining('--ui-write')]);
  expect(readFileSync(join(folder.path, 'test.yaml'), 'utf8')).toBe(YAML);
});

test.each([
  ['`config.storage.mode`', 'storage: {mode: readOnly}', {}],
  ['UI_READ_ONLY', 'storage: {mode: file}', { UI_READ_ONLY: 'true' }],
])('%s refuses to save the configuration file, despite serve --ui-write', async (name, setting, env) => {
  await using folder = await temporaryFolder();
  const yaml = YAML.replace('adminAddr: off', `adminAddr: off, ${setting}`);
  await using running = await gateway(yaml, { admin: true, uiWrite: true, folder: folder.path, env });
  const file = await read(running);
  expect(file.readOnly).toContain(name);
  const answer = await save(running, `${file.text}# more\n`, file.hash);
  expect([answer.status, answer.text]).toEqual([403, expect.stringContaining('the gateway is read-only')]);
  expect(readFileSync(join(folder.path, 'test.yaml'), 'utf8')).toBe(yaml);
});

test('UI_READ_ONLY=false does not refuse to save the configuration file', async () => {
  await using folder = await temporaryFolder();
  const env = { UI_READ_ONLY: 'false' };
  await using running = await gateway(YAML, { admin: true, uiWrite: true, folder: folder.path, env });
  const file = await read(running);
  expect((await save(running, `${file.text}# more\n`, file.hash)).status).toBe(200);
});

test('`config.storage.mode: hybrid` is refused with the modes that are supported', async () => {
  const yaml = YAML.replace('adminAddr: off', 'adminAddr: off, storage: {mode: hybrid}');
  await expect(gateway(yaml)).rejects.toThrow(
    'config.storage.mode: only `file` and `readOnly` are supported',
  );
});

test('a configuration from standard input has no file to show', async () => {
  await using running = await gateway(YAML, { admin: true });
  expect(await read(running)).toMatchObject({
    text: null,
    problem: expect.stringContaining('standard input'),
  });
  expect((await save(running, YAML, '')).status).toBe(403);
});

test('saving does not overwrite a configuration file that has changed since it was read', async () => {
  await using folder = await temporaryFolder();
  await using running = await start(folder.path);
  const path = join(folder.path, 'test.yaml');
  const file = await read(running);
  writeFileSync(path, `${YAML}# theirs\n`);
  const answer = await save(running, file.text, file.hash);
  expect([answer.status, answer.text]).toEqual([409, expect.stringContaining('has changed')]);
  expect(readFileSync(path, 'utf8')).toBe(`${YAML}# theirs\n`);
});

test.each([
  ['what is not YAML', (text: string) => `${text}  - [`, 'AGW0001'],
  ['an unknown key', (text: string) => text.replace('port: 0', 'prot: 0'), 'AGW0101'],
  [
    'a placeholder for no secret',
    (text: string) => text.replace('<redacted:3>', '<redacted:9>'),
    '<redacted:9>',
  ],
])('saving a configuration file with %s is rejected', async (_name, change, said) => {
  await using folder = await temporaryFolder();
  await using running = await start(folder.path);
  const file = await read(running);
  const answer = await save(running, change(file.text), file.hash);
  expect([answer.status, answer.text]).toEqual([422, expect.stringContaining(said)]);
  expect(readFileSync(join(folder.path, 'test.yaml'), 'utf8')).toBe(YAML);
});

test('the position of a problem after a secret refers to the text with placeholders', async () => {
  await using folder = await temporaryFolder();
  await using running = await start(folder.path);
  const file = await read(running);
  const changed = file.text.replace('{key: <redacted:3>}, {', '{key: <redacted:3>}, {oops: 1, ');
  const { text: body } = await send(`${running.admin}/api/config/validate`, {
    method: 'POST',
    body: changed,
  });
  const { diagnostics } = JSON.parse(body) as {
    diagnostics: { code: string; range: { start: { offset: number }; end: { offset: number } } }[];
  };
  const unknown = diagnostics.find(({ code }) => code === 'AGW0101');
  expect(changed.slice(unknown?.range.start.offset, unknown?.range.end.offset)).toBe('oops');
  expect(body).not.toContain('client-key');
});

test('a configuration file that is no longer valid YAML is not shown', async () => {
  await using folder = await temporaryFolder();
  await using running = await start(folder.path);
  writeFileSync(join(folder.path, 'test.yaml'), 'apiKey: [sk-new-secret');
  const file = await read(running);
  expect(file).toMatchObject({ text: null, hash: null, problem: expect.stringContaining('not valid YAML') });
  expect(JSON.stringify(file)).not.toContain('sk-new');
});
