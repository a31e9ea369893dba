import { expect, test } from 'vitest';
import { createHashEmbedder } from '../../../../src/adapter/memory/embed/hash-embedder.ts';
import { type FoundTurn, searchTurns } from '../../../../src/adapter/memory/search/turns.ts';
import { openSqliteStore } from '../../../../src/adapter/memory/sqlite/open.ts';
import { temporaryFolder } from '../../../kit/folder.ts';
import { recordingLog } from '../recording-log.ts';

interface Said {
  readonly text: string;
  readonly session?: string;
  readonly agent?: string;
  readonly role?: 'assistant';
}

/** Unrelated turns, among which words of a few turns are rare. */
const OTHERS: readonly Said[] = Array.from({ length: 24 }, (_, index) => ({
  text: `Remark ${index}: the ${['harbour', 'orchard', 'archive', 'stairs'][index % 4]} was quiet on day ${index}.`,
  session: `other ${index % 5}`,
}));

/** What a search over these turns finds, said one after the other. */
async function found(said: readonly Said[], query: string): Promise<FoundTurn[]> {
  await using folder = await temporaryFolder();
  const store = await openSqliteStore({ dataDir: folder.path, log: recordingLog() });
  const turns = [...OTHERS, ...said].map(({ text, session = 'one', agent = 'agent', role }, index) => ({
    id: `${index}`,
    sessionId: session,
    agentId: agent,
    role: role ?? ('user' as const),
    content: text,
    createdAt: new Date(Date.UTC(2026, 0, 1, 0, index)).toISOString(),
  }));
  try {
    await store.importBatch({ entities: [], relations: [], documents: [], turns });
    return await searchTurns({ store, embedder: createHashEmbedder() }, { query, limit: 5 });
  } finally {
    await store.close();
  }
}

/** Expects that a turn is the first of the results, and that nothing replaces it. */
async function expectAnswer(right: string, said: readonly Said[], query: string): Promise<void> {
  const [first] = await found(said, query);
  expect(first?.content).toBe(right);
  expect(first).not.toHaveProperty('supersededBy');
}

test.each([
  ['The new rope is longer than 20 metres.', 'I no longer eat fish.', 'how long is the rope'],
  ['Right now the boiler shows error E5.', 'I live in Bern now.', 'which error does the boiler show'],
  ['The sofa was moved to the cellar.', 'Uncle Tom moved to Spain.', 'where is the sofa'],
  ['We use oat milk instead of cream in the soup.', 'Take the bus instead.', 'what do we use in the soup'],
  [
    'Der Drucker druckt nicht mehr in Farbe.',
    'Ich esse nicht mehr so viel Fleisch.',
    'druckt der Drucker Farbe',
  ],
])('"%s" is not replaced by "%s", which shares the words of change only', async (right, other, query) => {
  await expectAnswer(right, [{ text: right }, { text: other, session: 'two' }], query);
});

// In a small store, `want`, `month` and `kostet` are as rare as names.
test.each([
  [
    'how much do the brakes of the Skoda cost',
    [
      'The garage wants 340 for the brakes of the Skoda.',
      'Choir moved to 7, the caretaker wants to lock up early.',
    ],
  ],
  [
    'who is my dentist',
    ['My dentist is Dr. Moser in Linden Street.', 'My doctor retired, I go to Dr. Haas now.'],
  ],
  [
    'what does the gym cost a month',
    ['The gym costs 29 a month.', 'I switched the electricity to Nordwind, which costs 71 a month.'],
  ],
  [
    'wie hoch ist die Miete der Werkstatt',
    ['Die Miete der Werkstatt kostet 640 Euro im Monat.', 'Die Garage kostet jetzt 55 Euro im Monat.'],
  ],
])(
  'in a small store, the answer to "%s" is not replaced by news of something else',
  async (query, [right = '', other = '']) => {
    const turns = await found([{ text: right }, { text: other, session: 'two' }], query);
    expect(turns[0]?.content).toBe(right);
    expect(turns.filter(({ supersededBy }) => supersededBy !== undefined)).toEqual([]);
  },
);

test.each([
  [
    'how much is the yearly fee of the gym',
    [
      'The yearly fee of the gym is 290, paid by direct debit.',
      'The gym wrote, they put it up, 345 from March.',
    ],
  ],
  [
    'when does the code freeze begin',
    ['The code freeze begins on 2 March.', 'The freeze got pushed to 9 March because of the migration.'],
  ],
])(
  'a new value comes first in an answer to "%s", although it hardly has the words of the question',
  async (query, [old = '', latest = '']) => {
    const turns = await found([{ text: old }, { text: latest, session: 'two' }], query);
    expect(turns.slice(0, 2).map(({ content }) => content)).toEqual([latest, old]);
  },
);

test('the user of one agent replaces nothing that the user of another agent has said', async () => {
  const said = [
    { text: 'My flat is in Lisbon, near the river.', session: 'x1', agent: 'alice-bot' },
    { text: 'My flat is no longer in Lisbon, I moved to Porto.', session: 'y1', agent: 'bob-bot' },
  ];
  const replaced = async (turns: readonly Said[]) =>
    (await found(turns, 'in which city is my flat')).filter(({ supersededBy }) => supersededBy !== undefined);
  expect(await replaced(said)).toEqual([]);
  // The same user of one agent does.
  expect(await replaced(said.map(({ text, session }) => ({ text, session })))).toHaveLength(1);
});

test('what somebody says of themselves replaces nothing that another person has said', async () => {
  const [first] = await found(
    [{ text: 'Bob: My favourite tea is sencha.' }, { text: 'Carl: I no longer drink sencha tea.' }],
    'what is the favourite tea of Bob',
  );
  expect(first?.content).toMatch(/^Bob/);
  expect(first).not.toHaveProperty('supersededBy');
});

test('an assistant that repeats a value of before is not the newest answer', async () => {
  const turns = await found(
    [
      { text: 'I moved, my flat is in Porto now.' },
      { text: 'I will book a cleaner for your flat in Lisbon, every second week.', role: 'assistant' },
    ],
    'where is my flat now',
  );
  expect(turns[0]?.content).toMatch(/Porto/);
});

test('a question about the past keeps the order, and names what has replaced the answer', async () => {
  const turns = await found(
    [
      { text: 'The rent of the studio is 900 euros a month.' },
      { text: 'They wrote that the rent of the studio changed to 1,100 euros, and that they are sorry.' },
    ],
    'what was the rent of the studio a month in the past',
  );
  const old = turns.find(({ content }) => content.includes('900'));
  expect(turns[0]).toBe(old);
  expect(old?.supersededBy).toBe(turns.find(({ content }) => content.includes('1,100'))?.seq);
});

// Found by a user of the built program: any later news answered a question with "or".
test.each([
  [
    'Does the contract end in June or July?',
    ['The contract ends on 30 June.', 'The printer is now in room 5.'],
  ],
  [
    'Do we use Jira or Linear?',
    ['We use Jira for all tickets.', 'My blood type is A positive.', 'The daily standup moved to 10:15.'],
  ],
  ['Do I prefer tea or coffee?', ['I prefer green tea.', 'The keys are no longer under the mat.']],
  [
    'Läuft der Vertrag im Juni oder Juli aus?',
    ['Der Vertrag läuft am 30. Juni aus.', 'Der Drucker steht jetzt in Raum 5.'],
  ],
])('the answer to "%s" is not replaced by news of something else', async (query, said) => {
  const turns = await found(
    said.map((text) => ({ text })),
    query,
  );
  expect(turns[0]?.content).toBe(said[0]);
  expect(turns.filter(({ supersededBy }) => supersededBy !== undefined)).toEqual([]);
});

test('the answer to a question with "or" is replaced by the decision for one of the two', async () => {
  const [first, second] = await found(
    [{ text: 'We use Jira for all tickets.' }, { text: 'From now on everything is in Linear.' }],
    'Do we use Jira or Linear?',
  );
  expect([first?.content, second?.supersededBy]).toEqual([
    'From now on everything is in Linear.',
    first?.seq,
  ]);
});

test.each([
  ["What is Ann's locker number?", 'Ann: My locker is number 12.', 'Ben: My locker is number 31.'],
  ["When does Ann's flight leave?", 'Ann: My flight leaves at 7:40.', 'Ben: My flight leaves at 9:15.'],
  ["In which room is Ann's office?", 'Ann: My office is room 204.', 'Ben: My office is room 311.'],
  ["Where does Ann's wife work?", 'Ann: My wife works at the library.', 'Ben: My wife works at the harbour.'],
  [
    'Welche Nummer hat der Spind von Ann?',
    'Ann: Mein Spind hat die Nummer 12.',
    'Ben: Mein Spind hat die Nummer 31.',
  ],
])('%s is answered by what Ann says, not by what another person says later', async (query, right, other) => {
  await expectAnswer(right, [{ text: right }, { text: other }], query);
});
