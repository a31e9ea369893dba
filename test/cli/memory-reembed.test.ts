import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { writeFiles } from '../kit/memory-backend.ts';
import { type ServeProcess, service } from '../kit/process.ts';
import { tinyModel } from '../kit/tiny-model.ts';
import { until } from '../kit/until.ts';

const DOCUMENTS = 40;
const SECTIONS = 40;

interface Embedding {
  readonly state: string;
  readonly pending: number;
  readonly total?: number;
}

async function json(url: string, body?: object): Promise<Record<string, never>> {
  const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  const response = await fetch(url, { ...init, headers: { 'content-type': 'application/json' } });
  return (await response.json()) as Record<string, never>;
}

const stats = async ({
  url,
}: ServeProcess): Promise<{ embedder: string; embedding: Embedding; ready: boolean }> =>
  (await json(`${url}/api/memory/stats`)) as never;

// bobmatnyc/trusty-tools#3979, agent0ai/agent-zero#1792: an interrupted run began again from the first text.
test('a killed backend goes on embedding with an added model where it was, and finds texts meanwhile', async () => {
  await using folder = await temporaryFolder();
  const models = join(folder.path, 'models');
  await tinyModel(join(folder.path, 'animals'), {
    zebra: [1, 0, 0.1],
    horse: [0.9, 0.1, 0.2],
    harbour: [0, 1, 0],
  });
  const added = await cli(['memory', 'model', 'add', 'animals'], {
    env: { MEMORY_MODELS_DIR: models },
    cwd: folder.path,
  });
  expect(added.code).toBe(0);
  const section = (document: number, number: number): string =>
    `## Section ${number}\n\n${`zebra ${document} ${number} runs. `.repeat(40)}\n`;
  writeFiles(
    join(folder.path, 'docs'),
    Object.fromEntries(
      Array.from({ length: DOCUMENTS }, (_, document) => [
        `${document}.md`,
        Array.from({ length: SECTIONS }, (_, number) => section(document, number)).join('\n'),
      ]),
    ),
  );
  const start = (embedder: string): Promise<ServeProcess> =>
    service(['memory-backend', 'serve', '--port', '0', '--embedder', embedder], {
      env: {
        MEMORY_MODELS_DIR: models,
        MEMORY_DATA_DIR: join(folder.path, 'data'),
        MEMORY_DOCS_DIR: join(folder.path, 'docs'),
      },
    });
  {
    await using builtin = await start('builtin');
    await until(async () => (await stats(builtin)).ready, 30_000);
    expect((await stats(builtin)).embedding).toEqual({ state: 'idle', pending: 0 });
  }
  let left = 0;
  {
    await using first = await start('animals');
    const seen: Embedding[] = [];
    await until(async () => {
      const { embedder, embedding } = await stats(first);
      expect(embedder).toMatch(/^onnx\/animals-[0-9a-f]{12}\/3$/);
      seen.push(embedding);
      return embedding.pending < (embedding.total ?? 0);
    }, 30_000);
    // Texts that have no vector of the model yet are found by their words.
    const found = await json(`${first.url}/api/memory/search`, {
      query: `zebra ${DOCUMENTS - 1} ${SECTIONS - 1}`,
    });
    expect((found['results'] as readonly unknown[]).length).toBeGreaterThan(0);
    first.kill('SIGKILL');
    await first.finished;
    expect(first.stderr).toMatch(/embedding all texts again, with another embedder.* done=0 total=\d{4}/);
    left = seen.at(-1)?.pending ?? 0;
    expect(left).toBeGreaterThan(0);
  }
  await using second = await start('animals');
  await until(async () => (await stats(second)).embedding.pending === 0, 60_000);
  const [, done, total] = /another embedder.* done=(\d+) total=(\d+)/.exec(second.stderr) ?? [];
  expect(Number(total) - Number(done)).toBeLessThanOrEqual(left);
  await until(() => second.stderr.includes('all texts are embedded'));
  const { results } = (await json(`${second.url}/api/memory/search`, { query: 'horse' })) as {
    results?: { cosine: number }[];
  };
  expect(results?.[0]?.cosine).toBeGreaterThan(0.9);
}, 180_000);
