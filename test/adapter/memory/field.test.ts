import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import type { Json } from '../../kit/mcp.ts';
import { addressOf, memoryServe } from '../../kit/memory-processes.ts';
import type { ServeProcess } from '../../kit/process.ts';
import { until } from '../../kit/until.ts';

// What has stopped memory servers and indexers, or made them lose data, in the field: given to one process with one docs folder. Each
// input names the report that it is from.

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let memory: ServeProcess;
let sync: Json;

const docs = (...path: string[]): string => join(folder.path, 'docs', ...path);
const write = (name: string, content: string | Buffer): void => writeFileSync(docs(name), content);

async function call(path: string, init?: RequestInit): Promise<{ status: number; body: Json }> {
  const response = await fetch(`${addressOf(memory, 'api')}${path}`, init);
  return { status: response.status, body: await response.json() };
}
const post = (path: string, body: unknown, type = 'application/json') =>
  call(path, {
    method: 'POST',
    headers: { 'content-type': type },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
const status = async (): Promise<Json> => (await call('/ingest/status')).body.sync;
/** Where the best result is from. */
const found = async (query: string): Promise<Json> =>
  (await post('/search', { query, minScore: 0.3 })).body.results[0];

const DEEP = Array.from({ length: 150 }, () => 'd');
const LONG = `${'n'.repeat(252)}.md`;

beforeAll(async () => {
  folder = await temporaryFolder();
  mkdirSync(docs(), { recursive: true });
  write('good.md', '# Good\n\nOtters hold hands while they sleep.\n');
  // letta-ai/letta#3324, GitJournal/GitJournal#926
  write('binary.md', Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 2, 255, 254]));
  write('windows.md', Buffer.from('# Notes\n\n\x93hello\x94 caf\xe9\n', 'latin1'));
  // oracle/opengrok#233
  mkdirSync(docs('sub'));
  symlinkSync('.', docs('loop'));
  symlinkSync('..', docs('sub/up'));
  symlinkSync('self.md', docs('self.md'));
  // FractalBoy/perl-language-server#205
  symlinkSync('nowhere.md', docs('broken.md'));
  // syncthing/syncthing#767
  write(LONG, '# Long name\n\nZebras cross the road.\n');
  write('new\nline.md', '# Line break in the name\n\nQuokkas smile.\n');
  // syncany/syncany#372
  writeFileSync(
    Buffer.concat([Buffer.from(`${docs()}/`), Buffer.from([0xff]), Buffer.from('.md')]),
    '# Name of bytes\n',
  );
  // garrytan/gbrain#4543, basicmachines-co/basic-memory#368, aliasunder/vault-cortex#486
  write('yaml.md', '---\ntitle: [unclosed\nkey: `C:\\agent`\n---\n\n# Burrows\n\nWombats dig burrows.\n');
  write('types.md', '---\ntitle: 2024-01-01\ntype: null\ndepends_on: 5\n---\n\nTapirs swim.\n');
  write('columns.md', '--- start-multi-column: Example\n\n# Columns\n\nNumbats eat termites.\n');
  // dnotitia/akb#527
  write('nul.md', '# Nul\n\nPangolins\0 have scales.\n');
  // openclaw/openclaw#65796, tobi/qmd#855
  write('emoji.md', `# Emoji\n\n${'🌸'.repeat(6001)} meerkats\n`);
  // kirodotdev/KiroCrew#10199
  mkdirSync(docs(...DEEP), { recursive: true });
  write(join(...DEEP, 'x.md'), '# Deep\n\nAxolotls.\n');
  // MemPalace/mempalace#2221, cajasmota/grafel#6416
  execFileSync('mkfifo', [docs('pipe.md')]);
  mkdirSync(docs('folder.md'));
  write('folder.md/inside.md', '# Inside\n\nCapybaras bathe.\n');
  // microsoft/vscode#109964, markedjs/marked#396, quantizor/markdown-to-jsx#436, greghendershott/markdown#49, dart-lang/tools#2119
  const slow = [`# [foo](bar${'()'.repeat(5_000)}`, 'a_b__c'.repeat(20_000), '* '.repeat(20_000)];
  slow.push(
    `<TODO ${'a '.repeat(20_000)}`,
    '<!-- '.repeat(10_000),
    '['.repeat(50_000),
    '{{< '.repeat(10_000),
  );
  slow.push(`|${'-|'.repeat(20_000)}`, '<A '.repeat(20_000), '> '.repeat(20_000), '`'.repeat(30_001));
  write('slow.md', slow.join('\n\n'));
  memory = await memoryServe(folder.path);
  await until(async () => (await call('/stats')).body.ready, 30_000);
  sync = await status();
});
afterAll(async () => {
  await memory[Symbol.asyncDispose]();
  await folder.remove();
});

describe('a docs folder with files that nobody meant to be documents', () => {
  test('is read to its end, within seconds, and each file that cannot be read is named with the reason and what to do', () => {
    expect(sync).toMatchObject({ state: 'done', added: 10, failed: 6 });
    const problems = Object.fromEntries(sync.errors.map(({ path, message }: Json) => [path, message]));
    expect(problems).toEqual({
      'binary.md': 'it is not UTF-8 text: save it as UTF-8',
      'windows.md': 'it is not UTF-8 text: save it as UTF-8',
      'broken.md': 'the symbolic link leads to nothing: remove it, or restore what it leads to',
      'self.md': 'the symbolic link leads to itself: remove it',
      '\ufffd.md': 'the name of the file or of a folder above it is not UTF-8: rename it',
      [DEEP.slice(0, 33).join('/')]: 'folders nested deeper than 32 levels are not read',
    });
    expect(sync.durationMs).toBeLessThan(10_000);
  });

  test.each([
    ['otters hold hands', 'good.md'],
    ['zebras cross the road', LONG],
    ['quokkas smile', 'new\nline.md'],
    ['wombats dig burrows', 'yaml.md'],
    ['tapirs swim', 'types.md'],
    ['numbats eat termites', 'columns.md'],
    ['pangolins have scales', 'nul.md'],
    ['capybaras bathe', 'folder.md/inside.md'],
  ])('does not hide its other documents: "%s" finds %j', async (query, path) => {
    expect((await found(query)).metadata.path).toBe(path);
  });

  test('a passage never begins or ends within an emoji', async () => {
    const { content, metadata } = await found('meerkats');
    expect([metadata.path, content.isWellFormed()]).toEqual(['emoji.md', true]);
    expect(content).not.toContain('\ufffd');
  });
});

describe('calls with what clients and models really send', () => {
  test('a turn with a NUL or half a surrogate pair is refused with what to do, and nothing of it is stored', async () => {
    // deeplethe/utopia#665, agent0ai/agent-zero#1773, MemTensor/MemOS#1048
    const nul = await post('/chat', { sessionId: 's', role: 'user', content: 'Acme moved\0 to Shenzhen.' });
    const half = await post('/chat', '{"sessionId":"s","role":"user","content":"Hello \\ud800."}');
    expect([nul, half]).toMatchObject([
      { status: 400, body: { error: { message: expect.stringMatching(/NUL character.*remove it/) } } },
      {
        status: 400,
        body: { error: { message: expect.stringMatching(/surrogate pair.*remove or replace it/) } },
      },
    ]);
    expect((await call('/sessions/s/turns')).status).toBe(404);
    const document = await post(
      '/ingest/docs',
      '{"title":"half \\udc00","content":"Gibbons\\u0000 sing \\ud83d."}',
    );
    expect(document).toMatchObject({
      status: 200,
      body: { document: { status: 'created', title: 'half \ufffd' } },
    });
    expect((await found('gibbons sing')).content.isWellFormed()).toBe(true);
  });

  // arabold/docs-mcp-server#262, marcusquinn/aidevops#427, ohdearquant/khive#880, spences10/ccrecall#29, dbohdan/tinyfts#2, higebu/3gpp-mcp#43
  test.each([
    '"--error-on-warnings"',
    'pre-edit',
    'GB/s',
    "don't",
    'grammar::fa',
    '38.101',
    'NEAR("a" b',
    'a AND',
    '*',
    '"',
  ])('%s is a query like any other', async (query) => {
    expect((await post('/search', { query, turns: true })).status).toBe(200);
    expect((await call(`/turns?${new URLSearchParams({ query })}`)).status).toBe(200);
    expect((await call(`/entities?${new URLSearchParams({ query })}`)).status).toBe(200);
  });

  test('entities that are created at the same time, with names that are members of objects, are each there once', async () => {
    // modelcontextprotocol/servers#1819
    const names = ['__proto__', 'constructor', 'toString', 'e1', 'e2'];
    const create = (name: string | undefined, fact: number) =>
      post('/graph', { createEntities: [{ name, entityType: 'x', observations: [`fact ${fact}`] }] });
    const calls = await Promise.all(
      Array.from({ length: 40 }, (_, index) => create(names[index % 5], index)),
    );
    expect(new Set(calls.map((one) => one.status))).toEqual(new Set([200]));
    const { entities } = (await post('/graph/read', { names })).body;
    expect(entities.map(({ name }: Json) => name).sort()).toEqual(names.toSorted());
  });

  test('an import that ends within a line stores nothing, and says which line', async () => {
    // modelcontextprotocol/servers#4510, miruamel/xingyu#114
    const line = JSON.stringify({ type: 'entity', name: 'Half', entityType: 'x', observations: [] });
    const cut = await post('/import', `${line}\n{"type":"entity","na`, 'application/x-ndjson');
    expect(cut).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringContaining('line 2') } },
    });
    expect((await post('/graph/read', { names: ['Half'] })).body.entities).toEqual([]);
  });

  // Regular expressions that begin again at each letter.
  test.each([
    ['letters', 'Ab'.repeat(29_000)],
    ['parts of numbers', 'und'.repeat(19_000)],
  ])('turns with a word of 57,000 %s are compared in linear time', async (name, word) => {
    const sessionId = `long ${name}`;
    for (const hour of [5, 6])
      await post('/chat', { sessionId, role: 'user', content: `The ${name} gym opens at ${hour}. ${word}` });
    const asked = new URLSearchParams({ query: `when does the ${name} gym open`, sessionId });
    const { turns } = (await call(`/turns?${asked}`)).body;
    expect(turns[0].content).toContain('opens at 6');
  });

  test('a turn with a date in the future is replaced by what is said now', async () => {
    // vshulcz/deja-vu#1753, vshulcz/deja-vu#880
    const said = (sessionId: string, id: string, content: string, createdAt: string): string =>
      JSON.stringify({ type: 'turn', id, sessionId, agentId: 'a', role: 'user', content, createdAt });
    const others = Array.from({ length: 24 }, (_, index) =>
      said('other', `r${index}`, `Remark ${index}: day ${index} was quiet.`, '2026-01-01T00:00:00.000Z'),
    );
    const future = said(
      'clock',
      'f',
      'The alpaca lives in Oslo on the Grefsen farm.',
      '2099-01-01T00:00:00.000Z',
    );
    const imported = await post('/import', [...others, future].join('\n'), 'application/x-ndjson');
    expect(imported.body.stored).toBe(25);
    const later = 'The Grefsen farm in Oslo was too wet, so they have moved to Bergen.';
    await post('/chat', {
      sessionId: 'clock later',
      role: 'user',
      content: later,
      agentId: 'a',
    });
    const asked = new URLSearchParams({ query: 'where does the alpaca live', order: 'relevance' });
    const { turns } = (await call(`/turns?${asked}`)).body;
    expect(turns.slice(0, 2)).toMatchObject([
      { content: later },
      { content: 'The alpaca lives in Oslo on the Grefsen farm.', supersededBy: turns[0].seq },
    ]);
  });
});

test('a docs folder that is deleted while it is watched takes nothing with it, and is read again when it is back', async () => {
  // Signet-AI/signetai#1142, agentscope-ai/QwenPaw#1620. At once: of a folder that goes file by file, the first ones are deleted files.
  renameSync(docs(), join(folder.path, 'away'));
  await until(async () => (await status()).errors[0]?.message.includes('cannot be read'), 20_000);
  expect((await found('otters hold hands')).metadata.path).toBe('good.md');
  mkdirSync(docs());
  write('good.md', '# Good\n\nOtters hold hands while they sleep.\n');
  write('back.md', '# Back\n\nIbexes climb.\n');
  await until(async () => (await found('ibexes climb'))?.metadata.path === 'back.md', 20_000);
  expect(memory.stderr).not.toMatch(/internal error|UnhandledPromise/);
});
