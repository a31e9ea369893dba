import { expect, test } from 'vitest';
import type { Json } from '../../../kit/mcp.ts';
import { memoryBackend } from '../../../kit/memory-backend.ts';

// Documentation repeats itself: versions (StractOrg/stract#139), copies (gptme/gptme-rag#7, tale-project/tale#3061), text that stands on
// every page.

const INSTALL =
  'Download the archive of the command line tool from the mirror, unpack it into a folder of your path, and run its doctor ' +
  'command, which checks the version of the runtime, the rights of the folder and the address of the proxy. The doctor prints one ' +
  'line for each problem that it has found, and ends with status 0 if there is none.';
const page = (title: string, text: string): string => `# ${title}\n\n## Installing\n\n${text}\n`;

async function results(docs: Record<string, string>, query: string, more: object = {}): Promise<Json[]> {
  await using backend = await memoryBackend({ docs });
  return (await backend.post('search', { query, ...more })).body.results;
}
const placesOf = (found: Json[]): string[] => found.map(({ metadata }) => metadata.path);

test('a passage in several versions is one result, that of the current one, and says where else it stands', async () => {
  const [first, ...others] = await results(
    {
      'setup.md': page('Setup', INSTALL),
      'versioned_docs/version-1.0/setup.md': page('Setup', INSTALL),
      'versioned_docs/version-10.0/setup.md': page('Setup', INSTALL),
      'versioned_docs/version-9.0/setup.md': page('Setup', INSTALL),
    },
    'install the command line tool',
  );
  expect(others).toEqual([]);
  expect(first.metadata.path).toBe('setup.md');
  expect(first.alsoIn.map(({ path, line }: Json) => `${path}:${line}`)).toEqual([
    'versioned_docs/version-10.0/setup.md:1',
    'versioned_docs/version-9.0/setup.md:1',
    'versioned_docs/version-1.0/setup.md:1',
  ]);
  expect(first.alsoIn[0]).toMatchObject({
    id: expect.stringMatching(/^[0-9a-f]{24}$/),
    anchor: 'installing',
  });
  expect(first.alsoIn[0]).not.toHaveProperty('differs');
});

test('a copy of a passage with several small sections is cited with the one that answers, as the passage itself is', async () => {
  const text =
    '# Kitchen\n\nNotes.\n\n## Kettle\n\nDescale it monthly.\n\n## Marmalade\n\nBoil oranges for an hour.\n';
  const [first] = await results(
    { 'new.md': text, 'old/new.md': `\n${text}` },
    'how long do oranges for marmalade boil',
  );
  expect(first.metadata).toMatchObject({ path: 'new.md', line: 9, anchor: 'marmalade' });
  expect(first.alsoIn).toMatchObject([
    { path: 'old/new.md', name: 'Kitchen > Marmalade', line: 10, anchor: 'marmalade' },
  ]);
});

test('a passage that denies what another one says is no copy of it', async () => {
  const text = (may: string): string =>
    `Guests ${may} enter the platypus lab without an escort during the opening hours of the main building.`;
  const found = await results(
    { 'one.md': page('Lab', text('may')), 'two.md': page('Lab', text('may not')) },
    'guests platypus lab without escort',
  );
  expect(placesOf(found).sort()).toEqual(['one.md', 'two.md']);
});

test('a version that differs in the answer is named with its words', async () => {
  const text = (port: number): string => `${INSTALL} The server listens on port ${port}.`;
  const [first, ...others] = await results(
    { 'v1/setup.md': page('Setup', text(8080)), 'v2/setup.md': page('Setup', text(9090)) },
    'on which port does the server listen',
  );
  expect(others).toEqual([]);
  expect(first.content).toContain('port 9090');
  expect(first.alsoIn).toMatchObject([{ path: 'v1/setup.md', differs: ['8080'] }]);
});

test('text of every page is one result and leaves room for others, however many pages there are', async () => {
  const help = `${INSTALL} Need help? Ask the community about anything in the forum.`;
  const docs: Record<string, string> = { 'z/forum.md': '# Forum\n\nThe forum has rules: be kind.\n' };
  for (let index = 0; index < 130; index += 1)
    docs[`page-${index}.md`] = `# Page ${index}\n\nAbout subject${index}.\n\n## Help\n\n${help}\n`;
  const found = await results(docs, 'community help forum', { minScore: 0.2 });
  const [first] = found.filter(({ content }) => content.includes('Need help?'));
  expect(found.filter(({ content }) => content.includes('Need help?'))).toHaveLength(1);
  expect(placesOf(found)).toContain('z/forum.md');
  expect(first.alsoIn).toHaveLength(5);
  expect(first.copies).toBe(129);
}, 60_000);

test('entries of a changelog that was copied to other pages are found once', async () => {
  const entries = ['1.2.0', '1.1.0'].map(
    (version) => `## ${version}\n\nThe doctor command of ${version} checks the proxy. ${INSTALL}\n`,
  );
  const changelog = `# Changelog\n\n${entries.join('\n')}`;
  const found = await results(
    { 'changelog.md': changelog, 'blog/release.md': changelog, 'about/history.md': changelog },
    'doctor command 1.1.0',
  );
  expect(found.filter(({ content }) => content.includes('of 1.1.0'))).toHaveLength(1);
  const [first] = found;
  expect(first.metadata.path).toBe('changelog.md');
  expect(first.content).toContain('of 1.1.0');
});

test('translations are different passages', async () => {
  const found = await results(
    {
      'en/mirror.md': '# Mirror\n\nThe mirror `dl.example.test` has all archives of the tool.\n',
      'de/mirror.md': '# Mirror\n\nAuf dem Spiegel `dl.example.test` liegen alle Archive des Werkzeugs.\n',
      'ja/mirror.md': '# Mirror\n\nミラー `dl.example.test` にはツールのすべてのアーカイブがあります。\n',
    },
    'mirror dl.example.test',
  );
  expect(placesOf(found).sort()).toEqual(['de/mirror.md', 'en/mirror.md', 'ja/mirror.md']);
  for (const one of found) expect(one).not.toHaveProperty('alsoIn');
});

test('a copy that was ingested is named with its source', async () => {
  await using backend = await memoryBackend({ docs: { 'setup.md': page('Setup', INSTALL) } });
  await backend.post('ingest/docs', {
    title: 'Setup',
    content: page('Setup', INSTALL),
    source: 'https://wiki.test/setup',
  });
  const [first, ...others] = (await backend.post('search', { query: 'install the command line tool' })).body
    .results;
  expect(others).toEqual([]);
  const places = [first.metadata.source, ...first.alsoIn.map(({ source }: Json) => source)];
  expect(places.sort()).toEqual(['https://wiki.test/setup', 'setup.md']);
});

/** Texts of about fifty words, of which each repeats the one before it except for two words, and the last not the first. */
const CHAIN = [
  'two tests and one sample',
  'two tests and nine rehearsals',
  'six drills and nine rehearsals',
] as const;
const chained = (part: string): string =>
  `The keeper of the weather station writes down wind, rain and pressure at seven in the morning, compares them with those of ` +
  `the harbour, sends both to the institute by telegram, and repeats it at noon with ${part} of ` +
  `the old barometer, the thermometer, the gauge beside it and every lamp on winter days.`;
const ORDERS = [
  [0, 1, 2],
  [0, 2, 1],
  [1, 0, 2],
  [1, 2, 0],
  [2, 0, 1],
  [2, 1, 0],
] as const;

test.each(ORDERS)(
  'passages that a third one resembles are one result, whichever of them is the best: %i, %i, %i',
  async (...order) => {
    const docs = Object.fromEntries(
      order.map((place, index) => [`${'abc'[index]}.md`, page('Station', chained(CHAIN[place] ?? ''))]),
    );
    const [first, ...others] = await results(docs, 'keeper of the weather station telegram');
    expect(others).toEqual([]);
    expect(first.alsoIn).toHaveLength(2);
  },
);

test('what is merged does not depend on the order in which passages were stored', async () => {
  const merged = async (order: readonly number[]): Promise<string[][]> => {
    await using backend = await memoryBackend();
    for (const place of order)
      await backend.post('ingest/docs', {
        title: 'Station',
        content: page('Station', chained(CHAIN[place] ?? '')),
        source: `https://wiki.test/${place}`,
      });
    const found = (await backend.post('search', { query: 'keeper of the weather station telegram' })).body;
    return found.results.map(({ metadata, alsoIn = [] }: Json) =>
      [metadata, ...alsoIn].map(({ source }: Json) => source),
    );
  };
  const [first, ...others] = await Promise.all(ORDERS.map(merged));
  expect(first).toHaveLength(1);
  for (const other of others) expect(other).toEqual(first);
});

test.each([
  ['more.md', 'less.md'],
  ['z-more.md', 'a-less.md'],
])('a passage with one more word of the query stands for its copy without it: %s, %s', async (more, less) => {
  const found = await results(
    {
      [more]: page('Station', chained('two tests and one zeppelin')),
      [less]: page('Station', `${chained('two tests and one sample')} Weather station, weather station.`),
    },
    'weather station zeppelin',
    { minScore: 0.1 },
  );
  expect(placesOf(found)).toEqual([more]);
  expect(found[0].alsoIn).toMatchObject([{ path: less, differs: ['sample'] }]);
});

test('passages from a template stay apart, also beside one that lacks the word of each', async () => {
  const found = await results(
    {
      'debian.md': page('Setup', `${INSTALL} On Debian too.`),
      'fedora.md': page('Setup', `${INSTALL} On Fedora too.`),
      'windows.md': page('Setup', `${INSTALL} On Windows too.`),
    },
    'install the command line tool on Debian or Fedora',
  );
  expect(placesOf(found)).toEqual(expect.arrayContaining(['debian.md', 'fedora.md']));
});
