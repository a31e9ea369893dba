import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createHashEmbedder } from '../../../../src/adapter/memory/embed/hash-embedder.ts';
import { openStoreOn } from '../../../../src/adapter/memory/postgres/open.ts';
import { searchTurns, type TurnSearchRequest } from '../../../../src/adapter/memory/search/turns.ts';
import { openSqliteStore } from '../../../../src/adapter/memory/sqlite/open.ts';
import type { Store } from '../../../../src/adapter/memory/store.ts';
import { temporaryFolder } from '../../../kit/folder.ts';
import { pgliteServer } from '../../../kit/pglite-pool.ts';
import { recordingLog } from '../recording-log.ts';

/** Sessions of different people and languages; each line is a minute later. */
const CONVERSATIONS: Readonly<Record<string, { at: string; lines: readonly string[] }>> = {
  club: {
    at: '2026-02-01T10:00:00Z',
    lines: [
      'Lena: I have reserved the rowing club for the 14th of March.',
      'Tom: Does the club have speakers?',
      'Lena: Yes, but ancient ones.',
    ],
  },
  'club later': {
    at: '2026-02-09T19:00:00Z',
    lines: [
      'Lena: The rowing club double-booked us, so we moved the reservation to the 21st of March.',
      'Tom: Then I need another shift.',
      'Tom: The rowing team of the town won two medals in Kiel.',
      'Lena: I love the rowing club by the river in March, when all is reserved for us.',
    ],
  },
  port: {
    at: '2026-01-05T08:00:00Z',
    lines: [
      'What is the port of the staging server?',
      'It listens on 4022, behind the jump host.',
      'The library is at https://example.com/lib.',
    ],
  },
  shop: {
    at: '2026-03-03T09:00:00Z',
    lines: [
      'Put the sock yarn on the price list, it is 14.50 a skein.',
      'Done, the yarn is on the list with 14.50.',
    ],
  },
  'shop later': {
    at: '2026-06-03T09:00:00Z',
    lines: [
      'Dyes are expensive these days. Sock yarn has to be 17.25 or I earn nothing on it.',
      'Noted, I have changed the list: sock yarn is 17.25 a skein.',
      'How much sock yarn is left, by the way?',
    ],
  },
  日記: {
    at: '2026-03-02T08:00:00Z',
    lines: ['今日は成語しりとりをした。', '晩ご飯はカレーだった。', '重跑gen-itgc后50条悬空引用清零'],
  },
};

function turns() {
  return Object.entries(CONVERSATIONS).flatMap(([sessionId, { at, lines }]) =>
    lines.map((content, index) => ({
      id: `${sessionId} ${index}`,
      sessionId,
      agentId: 'agent',
      role: /^(?:Done|Noted),/.test(content) ? ('assistant' as const) : ('user' as const),
      content,
      createdAt: new Date(Date.parse(at) + index * 60_000).toISOString(),
    })),
  );
}

const embedder = createHashEmbedder();
const closing: (() => Promise<unknown>)[] = [];
const stores = new Map<string, Store>();

beforeAll(async () => {
  const folder = await temporaryFolder();
  const server = await pgliteServer();
  stores.set('sqlite', await openSqliteStore({ dataDir: folder.path, log: recordingLog() }));
  stores.set('postgres', await openStoreOn(server.pool(), 'PGlite', recordingLog()));
  for (const store of stores.values()) {
    closing.push(() => store.close());
    await store.importBatch({ entities: [], relations: [], documents: [], turns: turns() });
  }
  closing.push(
    () => folder.remove(),
    () => server.close(),
  );
}, 120_000);
afterAll(async () => {
  for (const close of closing) await close();
});

describe.each(['sqlite', 'postgres'])('search over turns on %s', (kind) => {
  const ask = async (query: string, more: Partial<TurnSearchRequest> = {}) => {
    const store = stores.get(kind);
    if (store === undefined) throw new Error(kind);
    return searchTurns({ store, embedder }, { query, limit: 5, ...more });
  };
  const contents = async (...args: Parameters<typeof ask>) =>
    (await ask(...args)).map(({ content }) => content);

  test('a question in natural language finds turns that lack most of its words', async () => {
    expect((await contents('why is it that the club has such old speakers'))[0]).toMatch(/^Lena: Yes/);
    expect(await contents('completely unrelated astronomy')).toEqual([]);
  });

  test('an answer is found by the question before it', async () => {
    expect((await contents('which port does the staging server use'))[0]).toBe(
      'It listens on 4022, behind the jump host.',
    );
  });

  test('of a fact that changed, the latest is first and the earlier one names it', async () => {
    const found = await ask('for which day in March is the rowing club reserved?');
    const [latest] = found;
    const earlier = found.find(({ content }) => content.includes('14th of March'));
    expect(latest?.content).toMatch(/21st of March/);
    expect(latest).not.toHaveProperty('supersededBy');
    expect(latest).toMatchObject({ speaker: 'Lena', sessionId: 'club later', role: 'user' });
    // Not by the last turn, which resembles both and says nothing of a change.
    expect(earlier?.supersededBy).toBe(latest?.seq);
  });

  test('asOf answers as if nothing had been said since', async () => {
    const found = await ask('for which day in March is the rowing club reserved?', {
      asOf: '2026-02-05T00:00:00.000Z',
    });
    expect(found[0]?.content).toMatch(/14th of March/);
    expect(found.some(({ supersededBy }) => supersededBy !== undefined)).toBe(false);
    expect(found.every(({ createdAt }) => createdAt < '2026-02-05')).toBe(true);
  });

  test('facts that only resemble each other supersede nothing', async () => {
    const found = await ask('what did the rowing team win');
    expect(found[0]?.content).toMatch(/two medals/);
    expect(found[0]).not.toHaveProperty('supersededBy');
  });

  test('of values in equal words, the newest is first, and the question about it is not', async () => {
    const found = await contents('what does a skein of sock yarn cost');
    expect(found[0]).toMatch(/17\.25/);
    expect(found.findIndex((one) => one.includes('17.25'))).toBeLessThan(
      found.findIndex((one) => one.includes('14.50')),
    );
  });

  test('a question about the past keeps what was said first where it fits best', async () => {
    expect((await contents('what was the sock yarn a skein when it was put on the price list'))[0]).toMatch(
      /14\.50/,
    );
  });

  test('an assistant that confirms a change supersedes nothing', async () => {
    const found = await ask('what does a skein of sock yarn cost', { limit: 10 });
    const confirmed = found.find(({ content }) => content.startsWith('Noted'));
    expect(confirmed?.role).toBe('assistant');
    expect(found.filter(({ supersededBy }) => supersededBy === confirmed?.seq)).toEqual([]);
  });

  test('turns without spaces between words are found, and names in them', async () => {
    expect((await contents('しりとり'))[0]).toBe('今日は成語しりとりをした。');
    expect((await contents('itgc'))[0]).toMatch(/^重跑/);
  });

  test('only turns of the requested session and agent are returned', async () => {
    const found = await ask('rowing club', { sessionId: 'club' });
    expect(new Set(found.map(({ sessionId }) => sessionId))).toEqual(new Set(['club']));
    expect(await ask('rowing club', { agentId: 'someone else' })).toEqual([]);
  });
});
