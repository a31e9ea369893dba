import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect } from 'vitest';
import { openStore } from '../../src/adapter/memory/open-store.ts';
import { DATABASE_FILE } from '../../src/adapter/memory/sqlite/namespace-folder.ts';
import { recordingLog } from '../adapter/memory/recording-log.ts';
import { sharedBrowser } from '../kit/browser.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { memoryBackend, type TestBackend } from '../kit/memory-backend.ts';
import { HOSTILE } from '../kit/memory-documents.ts';
import { covers } from '../kit/verifies.ts';
import { MEMORY_PAGES, watchedPage } from '../kit/web-page.ts';

covers('memory.service.6');

const { browserTest } = sharedBrowser('test/web/memory-replay.test.ts');

const TURNS = [
  ['user', 'one: which port?'],
  ['assistant', 'two: port 8080'],
  ['system', 'three: a note'],
  ['user', 'four: ````thanks'],
  ['assistant', `five: ${HOSTILE}`],
] as const;

let backend: TestBackend;
beforeAll(async () => {
  backend = await memoryBackend({ pages: MEMORY_PAGES });
  for (let index = 0; index < 55; index += 1)
    await backend.memory.store.appendTurn({
      sessionId: `early-${index}`,
      agentId: 'a',
      role: 'user',
      content: 'hello',
    });
  for (const [role, content] of TURNS)
    await backend.memory.store.appendTurn({
      sessionId: 'chat-1',
      agentId: role === 'user' ? 'person' : 'helper',
      role,
      content,
    });
});
afterAll(() => backend[Symbol.asyncDispose]());

browserTest('the replay page selects a session, steps and plays by keyboard alone', async (browser) => {
  const { page, problems } = await watchedPage(browser, backend.url, { isOwn: true });
  await page.clock.install();
  await page.goto(`${backend.url}/ui/replay`);
  const session = page.getByRole('link', { name: 'chat-1' });
  await session.waitFor();
  while ((await page.evaluate('document.activeElement.textContent')) !== 'chat-1')
    await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.getByText('Turn 1 of 5').waitFor();
  const now = page.locator('.conversation [aria-current]');
  await page.keyboard.press('ArrowRight');
  await now.getByText('two: port 8080').waitFor();
  await page.keyboard.press('End');
  await now.getByText('five:').waitFor();
  await page.keyboard.press('ArrowLeft');
  await now.getByText('four:').waitFor();
  await page.waitForURL(/session=chat-1&turn=4/);
  await page.keyboard.press('Home');
  await now.getByText('one:').waitFor();
  await page.getByRole('heading', { level: 1 }).focus();
  // The whole session plays in a second: the page's clock waits until it was seen to play.
  await page.clock.pauseAt(Date.now() + 1_000);
  await page.keyboard.press(' ');
  await page.getByRole('button', { name: 'Pause' }).waitFor();
  await page.clock.resume();
  // Playback continues to the end and stops there.
  await now.getByText('five:').waitFor();
  await page.getByRole('button', { name: 'Play' }).waitFor();
  await page.getByText('Turn 5 of 5').waitFor();
  expect(problems).toEqual([]);
});

browserTest('the replay page opens a turn by its URL, and filters hide the others', async (browser) => {
  const { page } = await watchedPage(browser, backend.url);
  await page.goto(`${backend.url}/ui/replay?session=chat-1&turn=3`);
  const lines = page.getByRole('listbox', { name: 'Turns' }).getByRole('option');
  await page.locator('.conversation [aria-current]').getByText('three: a note').waitFor();
  expect(await lines.count()).toBe(5);
  await page.getByLabel('Role').selectOption('assistant');
  await lines.nth(2).waitFor({ state: 'detached' });
  expect(await lines.allInnerTexts()).toEqual([
    expect.stringContaining('two:'),
    expect.stringContaining('five:'),
  ]);
  await page.getByLabel('Role').selectOption('all');
  await page.getByLabel('Agent').selectOption('person');
  await page.keyboard.press('Escape');
  await page.getByLabel('Search in the turns').fill('THANKS');
  await lines.nth(1).waitFor({ state: 'detached' });
  await page.getByText('Turn 4 of 5').waitFor();
  await page.getByLabel('Search in the turns').fill('nothing has this');
  await page.getByText('No turn matches the filter').waitFor();
});

browserTest('the replay page loads older sessions on demand', async (browser) => {
  const { page } = await watchedPage(browser, backend.url);
  await page.goto(`${backend.url}/ui/replay`);
  const sessions = page.getByRole('navigation', { name: 'Sessions' }).getByRole('link');
  await sessions.nth(49).waitFor();
  expect(await sessions.count()).toBe(50);
  await page.getByRole('button', { name: 'Older sessions' }).click();
  await page.getByRole('link', { name: 'early-0', exact: true }).waitFor();
  expect(await sessions.count()).toBe(56);
});

browserTest(
  'the replay page exports a complete session as JSON Lines and as escaped text',
  async (browser) => {
    const { page } = await watchedPage(browser, backend.url);
    await page.goto(`${backend.url}/ui/replay?session=chat-1`);
    const save = async (name: string): Promise<string> => {
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name }).click(),
      ]);
      return readFileSync(await file.path(), 'utf8');
    };
    const lines = (await save('Export JSONL')).trimEnd().split('\n');
    const stored = (await backend.get('sessions/chat-1/turns')).body.turns;
    expect(lines.map((line) => JSON.parse(line))).toEqual(stored);
    const text = await save('Export Markdown');
    expect(text).toContain('## 4. user, person');
    // Longer than the one inside, which therefore does not end it.
    expect(text).toContain('`````text\nfour: ````thanks\n`````\n');
  },
);

browserTest('the replay page handles fifty thousand turns and a turn of ten megabytes', async (browser) => {
  await using folder = await temporaryFolder();
  const store = await openStore({ dataDir: folder.path, log: recordingLog() });
  const huge = 'word '.repeat(2 * 1024 * 1024);
  await store.appendTurn({ sessionId: 'long', agentId: 'a', role: 'user', content: huge });
  await store.close();
  const database = new DatabaseSync(join(folder.path, DATABASE_FILE));
  // Through the store, one by one, they would take ten seconds.
  database.exec(`
    WITH RECURSIVE numbers(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < 50000)
    INSERT INTO memory_chat_history (id, session_id, agent_id, role, content, created_at)
    SELECT 'long-' || n, 'long', 'a', 'assistant', 'turn number ' || n, '2026-01-01T00:00:00.000Z' FROM numbers;
    UPDATE memory_sessions SET turns = 50000 WHERE session_id = 'long'`);
  database.close();
  await using backend = await memoryBackend({ pages: MEMORY_PAGES, data: folder.path });
  const { page } = await watchedPage(browser, backend.url);
  await page.goto(`${backend.url}/ui/replay?session=long`);
  await page.getByText('characters are left').waitFor();
  expect((await page.locator('.conversation').innerText()).length).toBeLessThan(15_000);
  await page.getByText('Turn 1 of 50,000').waitFor({ timeout: 20_000 });
  await page.getByRole('listbox', { name: 'Turns' }).focus();
  await page.keyboard.press('End');
  await page.getByText('Turn 50,000 of 50,000').waitFor();
  await page
    .getByRole('listbox', { name: 'Turns' })
    .getByRole('option', { name: 'turn number 50000' })
    .waitFor();
  expect(await page.getByRole('listbox', { name: 'Turns' }).getByRole('option').count()).toBeLessThan(60);
  const took = await page.evaluate(`new Promise((done) => {
    const startedAt = performance.now();
    document.querySelector('.timeline').scrollTop = 800000;
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - startedAt)));
  })`);
  expect(took).toBeLessThan(1_000);
  await page.getByLabel('Search in the turns').fill('number 4321');
  await page.getByText(/Turn \d/).waitFor();
  await page
    .getByRole('listbox', { name: 'Turns' })
    .getByRole('option', { name: 'turn number 43210' })
    .waitFor();
  expect(await page.getByRole('listbox', { name: 'Turns' }).getByRole('option').count()).toBeLessThan(15);
});
