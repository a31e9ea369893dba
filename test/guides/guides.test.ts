import { globSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { llmProvider } from '../kit/llm-provider.ts';
import { freePort } from '../kit/ports.ts';
import { until } from '../kit/until.ts';
import { followGuide } from './guide.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

test('the guide on an OpenAI key: programs call with their own keys, and only the provider gets its key', async () => {
  const provider = await llmProvider();
  try {
    await using followed = await followGuide('protect-openai-key.md', {
      4000: String(await freePort()),
      'apiKey: $OPENAI_API_KEY': `apiKey: $OPENAI_API_KEY, baseUrl: "http://${provider.address}/v1"`,
      'sk-...': 'sk-of-the-provider',
    });
    const [, answer = '', status] = followed.printed;
    expect(JSON.parse(answer)).toMatchObject({ choices: [{ message: { content: 'Hello.' } }] });
    expect(status).toBe('401\n');
    expect(provider.received.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer sk-of-the-provider',
    ]);
    await until(() => followed.log.includes('401'));
    const { CRAWLER_KEY = '' } = followed.environment;
    expect(CRAWLER_KEY).toHaveLength(48);
    expect(followed.log).toContain('crawler');
    expect(followed.log).not.toContain(CRAWLER_KEY);
  } finally {
    await provider.close();
  }
});

test('the guide on servers of a desktop: servers are imported, started, and a client gets the URL', async () => {
  const server = (name: string): string =>
    join(root, `node_modules/@modelcontextprotocol/${name}/dist/index.js`);
  const port = await freePort();
  await using followed = await followGuide('desktop-servers.md', {
    3000: String(port),
    '"npx"': '"node"',
    '"-y", "@modelcontextprotocol/server-filesystem"': `"${server('server-filesystem')}"`,
    '"-y", "@modelcontextprotocol/server-memory"': `"${server('server-memory')}"`,
  });
  const [, checked, connected] = followed.printed;
  expect(checked).toContain('files');
  expect(connected).toContain(`http://127.0.0.1:${port}/mcp`);
  const written = await readFile(join(followed.folder, 'gateway.yaml'), 'utf8');
  expect(written).toContain('NOTES_TOKEN');
  expect(written).not.toContain('secret-of-notes');
});

test('the guide on tools per client: a reader is shown tools that read, an editor all', async () => {
  const server = join(root, 'node_modules/@modelcontextprotocol/server-filesystem/dist/index.js');
  await using followed = await followGuide('tools-per-client.md', {
    3000: String(await freePort()),
    'cmd: npx, args: ["-y", "@modelcontextprotocol/server-filesystem", "."]': `cmd: node, args: ["${server}", "."]`,
  });
  const [, reader = '', editor = ''] =
    /^reader\n([\s\S]*)editor\n([\s\S]*)$/.exec(followed.printed.at(-1) ?? '') ?? [];
  expect(reader).toContain('"name":"read_text_file"');
  expect(reader).not.toMatch(/write_file|move_file/);
  expect(editor).toContain('"name":"write_file"');
});

test('the guide on rate limits: the fourth call is rejected, with the time of the next', async () => {
  await using followed = await followGuide('rate-limits.md', { 4000: String(await freePort()) });
  const lines = (followed.printed[0] ?? '').trim().split('\n');
  expect(lines.slice(0, 3)).toEqual(Array.from({ length: 3 }, () => '200 retry-after='));
  expect(lines[3]).toMatch(/^429 retry-after=[1-9]\d*$/);
});

test('the guide on GitHub Actions uses inputs and hooks that exist', () => {
  const guide = readFileSync(join(root, 'docs/guides/github-actions.md'), 'utf8');
  const [workflow = '', preCommit = ''] = [...guide.matchAll(/```yaml\n([\s\S]*?)```/g)].map(
    ([, text]) => text,
  );
  const { jobs } = parse(workflow) as { jobs: { validate: { steps: { uses: string; with?: object }[] } } };
  const action = parse(readFileSync(join(root, 'action.yml'), 'utf8')) as { inputs: object };
  const inputs = Object.keys(jobs.validate.steps[1]?.with ?? {});
  expect(inputs.toSorted()).toEqual(Object.keys(action.inputs).toSorted());
  const hooks = parse(readFileSync(join(root, '.pre-commit-hooks.yaml'), 'utf8')) as { id: string }[];
  const { repos } = parse(preCommit) as { repos: { hooks: { id: string }[] }[] };
  expect(repos[0]?.hooks.map(({ id }) => id)).toEqual(hooks.map(({ id }) => id));
});

test('each guide is listed in docs/guides/README.md and followed by a test', () => {
  const guides = globSync('docs/guides/*.md', { cwd: root }).map((file) => basename(file));
  const index = readFileSync(join(root, 'docs/guides/README.md'), 'utf8');
  const tests = readFileSync(fileURLToPath(import.meta.url), 'utf8');
  for (const guide of guides.filter((name) => name !== 'README.md')) {
    expect(index).toContain(`](${guide})`);
    expect(tests).toContain(guide);
  }
});
