import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cli, type Ran } from '../kit/cli.ts';
import { fakeAdmin, says } from '../kit/fake-admin.ts';
import { temporaryFolder } from '../kit/folder.ts';
import type { Json } from '../kit/mcp.ts';
import { memoryBackend, type TestBackend } from '../kit/memory-backend.ts';

const run = (backend: TestBackend, ...args: string[]): Promise<Ran> =>
  cli(['memory', ...args], { env: { MEMORY_API_URL: backend.url } });

async function fill(backend: TestBackend): Promise<void> {
  await backend.post('graph', {
    createEntities: [
      { name: 'Alice', entityType: 'person', observations: ['knows Go', 'tall'] },
      { name: 'Bob', entityType: 'person', observations: [] },
    ],
    createRelations: [
      { from: 'Alice', to: 'Bob', relationType: 'knows' },
      { from: 'Alice', to: 'Acme', relationType: 'works_at' },
    ],
  });
  for (const content of ['Alice is here', 'café ☕ line\nbreak'])
    await backend.post('chat', { sessionId: 's', role: 'user', content, agentId: 'planner' });
  await backend.post('ingest/docs', {
    title: 'Note',
    content: '# Note\n\n## One\n\nA zeppelin.\n\n## Two\n\nB.',
  });
}

const lines = (text: string): Json[] =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

test('an export is imported into another memory completely, once, and exported again as it was', async () => {
  await using folder = await temporaryFolder();
  await using source = await memoryBackend({ docs: { 'folder.md': '# Of the folder\n' } });
  await using target = await memoryBackend();
  await fill(source);
  const file = join(folder.path, 'memory.jsonl');
  expect(await run(source, 'export', '-o', file)).toMatchObject({ code: 0, stdout: '' });
  expect(readdirSync(folder.path)).toEqual(['memory.jsonl']);
  const exported = lines(readFileSync(file, 'utf8'));
  expect(exported.map(({ type }) => type)).toEqual([
    ...['entity', 'entity', 'relation', 'relation', 'turn', 'turn', 'document'],
  ]);

  expect(await run(target, 'import', file)).toMatchObject({ code: 0, stderr: 'stored 7, unchanged 0\n' });
  expect(await run(target, 'import', file)).toMatchObject({ code: 0, stderr: 'stored 0, unchanged 7\n' });
  expect(lines((await run(target, 'export')).stdout)).toEqual(exported);

  const { turns } = (await target.get('sessions/s/turns')).body;
  expect(turns).toMatchObject([{ agentId: 'planner', content: 'Alice is here' }, { role: 'user' }]);
  expect((await target.get('sessions')).body.sessions).toEqual((await source.get('sessions')).body.sessions);
  const { results } = (await target.post('search', { query: 'zeppelin', minScore: 0 })).body;
  expect(results[0]).toMatchObject({ content: expect.stringContaining('A zeppelin.') });
  const again = await target.post('ingest/docs', {
    title: 'Note',
    content: '# Note\n\n## One\n\nA zeppelin.\n\n## Two\n\nB.',
  });
  expect(again.body.document.status).toBe('unchanged');
});

test('the file of server-memory is imported, and adds observations to entities that exist', async () => {
  await using folder = await temporaryFolder();
  await using backend = await memoryBackend();
  await fill(backend);
  const file = join(folder.path, 'memory.jsonl');
  const bom = '\ufeff';
  writeFileSync(
    file,
    bom +
      [
        { type: 'entity', name: 'Alice', entityType: 'person', observations: ['tall', 'new'] },
        { type: 'entity', name: 'Carol', entityType: 'person', observations: ['x'] },
        { type: 'relation', from: 'Alice', to: 'Bob', relationType: 'knows' },
        { type: 'relation', from: 'Carol', to: 'Dave', relationType: 'knows' },
      ]
        .map((line) => JSON.stringify(line))
        .join('\n'),
  );
  const misnamed = await run(backend, 'import', file, '--namespace', 'two words');
  expect([misnamed.code, misnamed.stderr]).toEqual([
    expect.any(Number),
    expect.not.stringContaining('0 lines'),
  ]);
  expect(misnamed.stderr).toMatch(/namespace.*nothing was stored/i);
  expect((await run(backend, 'import', file)).stderr).toBe('stored 3, unchanged 1\n');
  const { entities } = (await backend.post('graph/read', { names: ['Alice', 'Carol'] })).body;
  expect(entities).toEqual([
    { name: 'Alice', entityType: 'person', observations: ['knows Go', 'tall', 'new'] },
    { name: 'Carol', entityType: 'person', observations: ['x'] },
  ]);
});

test('a bad line is named by its number in the file, and the batches before it are stored', async () => {
  await using folder = await temporaryFolder();
  await using backend = await memoryBackend();
  const file = join(folder.path, 'bad.jsonl');
  const entity = (n: number): string =>
    JSON.stringify({ type: 'entity', name: `E${n}`, entityType: 't', observations: [] });
  const all = Array.from({ length: 1100 }, (_, n) => entity(n));
  writeFileSync(file, [...all.slice(0, 1050), '{"type":"entity","name":"x"}', ...all.slice(1050)].join('\n'));
  const { code, stderr } = await run(backend, 'import', file);
  expect(code).toBe(1);
  expect(stderr).toContain('line 1051: `entityType`');
  expect(stderr).toContain('the first 1000 lines of the file are stored');
  expect((await backend.get('stats')).body.entities.entity).toBe(1000);
  writeFileSync(file, all.join('\n'));
  expect((await run(backend, 'import', file)).stderr).toBe('stored 100, unchanged 1000\n');
});

test('forget lists what it would delete, and deletes it with the token', async () => {
  await using backend = await memoryBackend();
  await fill(backend);
  const shown = await run(backend, 'forget', 'alice');
  expect(shown.code).toBe(0);
  expect(shown.stdout).toMatch(
    /^entity +Alice\nturn +s \S+ user: Alice is here\nselected: entities 1, relations 2, turns 1\n$/,
  );
  const token = /memory forget alice --token (\w+)/.exec(shown.stderr)?.[1] ?? '';
  expect((await run(backend, 'forget', 'alice', '--token', 'stale')).stderr).toContain('409');
  const done = await run(backend, 'forget', 'alice', '--token', token);
  expect(done.stdout).toContain('deleted: entities 1, relations 2, turns 1');
  expect((await run(backend, 'forget', 'alice')).stderr).toBe('nothing mentions it\n');
});

test('a missing backend, key and file are named', async () => {
  const env = { MEMORY_API_URL: 'http://127.0.0.1:1' };
  const missing = await cli(['memory', 'export'], { env });
  expect(missing).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('http://127.0.0.1:1 cannot be reached'),
  });
  await using backend = await memoryBackend({ key: 'secret-key' });
  const refused = await run(backend, 'export');
  expect(refused).toMatchObject({ code: 4, stderr: expect.stringContaining('MEMORY_API_KEY') });
  const unread = await run(backend, 'import', '/nonexistent/memory.jsonl');
  expect(unread).toMatchObject({ code: 2, stderr: expect.stringContaining('/nonexistent/memory.jsonl') });
});

test('export, import and forget with --namespace touch that namespace only', async () => {
  await using folder = await temporaryFolder();
  await using backend = await memoryBackend();
  await fill(backend);
  const file = join(folder.path, 'memory.jsonl');
  await run(backend, 'export', '-o', file);
  expect((await run(backend, 'import', file, '--namespace', 'team')).stderr).toBe('stored 7, unchanged 0\n');
  const preview = await run(backend, 'forget', 'Alice', '--namespace', 'team');
  const [, token = ''] = /--token (\S+) --namespace team\n/.exec(preview.stderr) ?? [];
  await run(backend, 'forget', 'Alice', '--token', token, '--namespace', 'team');
  const names = async (...args: string[]): Promise<unknown[]> =>
    lines((await run(backend, 'export', ...args)).stdout).flatMap(({ type, name }) =>
      type === 'entity' ? [name] : [],
    );
  expect(await names('--namespace', 'team')).toEqual(['Bob']);
  expect(await names()).toEqual(['Alice', 'Bob']);
});

test('an export that fails leaves no file behind', async () => {
  await using folder = await temporaryFolder();
  await using cutting = await fakeAdmin({
    '/api/memory/export': (response) =>
      void response.writeHead(200, { 'content-length': '1000' }).write('{}\n', () => response.destroy()),
  });
  const args = ['memory', 'export', '-o', 'memory.jsonl'];
  const cut = await cli(args, {
    env: { MEMORY_API_URL: `http://${cutting.address}` },
    cwd: folder.path,
  });
  expect(cut).toMatchObject({ code: 3, stderr: expect.stringContaining('cannot be reached') });
  expect(readdirSync(folder.path)).toEqual([]);

  await using backend = await memoryBackend();
  mkdirSync(join(folder.path, 'memory.jsonl'));
  const refused = await cli(args, { env: { MEMORY_API_URL: backend.url }, cwd: folder.path });
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('cannot write') });
  expect(readdirSync(folder.path)).toEqual(['memory.jsonl']);
});

// What listens at the address may be another server, or a proxy in front of the backend.
test.each([
  ['export', ['export']],
  ['backup', ['backup', 'copy.db', '--namespace', 'default']],
])('memory %s of a server that answers without a body says so', async (_, args) => {
  await using folder = await temporaryFolder();
  const empty = (response: ServerResponse) => void response.writeHead(204).end();
  await using other = await fakeAdmin({
    '/api/memory/export': empty,
    '/api/memory/namespaces/default/backup': empty,
  });
  const { code, stderr } = await cli(['memory', ...args], {
    env: { MEMORY_API_URL: `http://${other.address}` },
    cwd: folder.path,
  });
  expect([code, stderr]).toEqual([
    3,
    expect.stringContaining('the memory backend sent an unexpected response'),
  ]);
  expect(readdirSync(folder.path)).toEqual([]);
});

test.each([
  'null',
  '5',
  '"x"',
  '[]',
  '{}',
  '<html>',
  '{"stored":"1","unchanged":null,"token":{},"counts":1}',
])('memory import, forget and backup of a server that answers %s say so', async (body) => {
  await using folder = await temporaryFolder();
  writeFileSync(join(folder.path, 'lines.jsonl'), '{}\n');
  await using other = await fakeAdmin({
    '/api/memory/import': says(body),
    '/api/memory/forget': says(body),
    '/api/memory/namespaces': says(body),
  });
  for (const args of [
    ['import', 'lines.jsonl'],
    ['forget', 'Ann'],
    ['backup', 'copies'],
  ]) {
    const { code, stderr } = await cli(['memory', ...args], {
      env: { MEMORY_API_URL: `http://${other.address}` },
      cwd: folder.path,
    });
    expect([code, stderr]).toEqual([
      3,
      expect.stringContaining('the memory backend sent an unexpected response'),
    ]);
  }
});
