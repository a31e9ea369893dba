import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Json } from '../../../kit/mcp.ts';
import { memoryBackend, type TestBackend } from '../../../kit/memory-backend.ts';

// What a turn is news of, judged by what a client gets. Memories of agents fail at this in the field: facts about different things retire
// each other (getzep/graphiti#1728, mnemon-dev/mnemon#134), a denial counts as a correction (samvallad33/vestige#134), a change is not
// seen (getzep/graphiti#1841, getzep/graphiti#139, mem0ai/mem0#4536).

interface Pair {
  readonly first: string;
  readonly second: string;
  readonly query: string;
  /** Both answer the question, so either may be first. */
  readonly isEither?: true;
}

let backend: TestBackend;
beforeAll(async () => {
  backend = await memoryBackend();
});
afterAll(() => backend[Symbol.asyncDispose]());

let stored = 0;

/** What a search finds after these turns of one user, among unrelated ones, in a namespace of its own. */
async function found(texts: readonly string[], query: string): Promise<Json[]> {
  stored += 1;
  const namespace = { 'x-memory-namespace': `pair-${stored}` };
  const others = Array.from({ length: 24 }, (_, index) => ({
    sessionId: `other ${index % 5}`,
    content: `Remark ${index}: the ${['lighthouse', 'orchard', 'archive', 'stairs'][index % 4]} was quiet on day ${index}.`,
  }));
  const lines = [...others, ...texts.map((content) => ({ sessionId: 'one', content }))].map((turn, index) =>
    JSON.stringify({
      type: 'turn',
      id: `${index}`,
      agentId: 'agent',
      role: 'user',
      createdAt: new Date(Date.UTC(2026, 0, 1, 0, index)).toISOString(),
      ...turn,
    }),
  );
  const imported = await backend.post('import', lines.join('\n'), {
    ...namespace,
    'content-type': 'application/x-ndjson',
  });
  expect(imported.status).toBe(200);
  const asked = new URLSearchParams({ query, order: 'relevance', limit: '5' });
  return (await backend.get(`turns?${asked}`, namespace)).body.turns;
}

/** The places of both turns in the results, and whether the first is marked as replaced by the second. */
async function judged({ first, second, query }: Pair) {
  const turns = await found([first, second], query);
  const placeOf = (text: string) => turns.findIndex(({ content }) => content === text);
  const [early, late] = [turns[placeOf(first)], turns[placeOf(second)]];
  return {
    best: turns[0]?.content,
    isReplaced: early?.supersededBy !== undefined && early.supersededBy === late?.seq,
    mark: early?.supersededBy,
  };
}

const CHANGES: readonly Pair[] = [
  {
    first: 'I drive a Ford Focus to work.',
    second: 'I sold the Ford Focus and bought a Skoda Octavia.',
    query: 'which car do I drive to work',
  },
  {
    first: 'My running shoes are the Pegasus 38.',
    second: 'Binned the Pegasus running shoes, got myself a pair of Brooks Ghost.',
    query: 'which running shoes do I have',
  },
  {
    first: 'Der Stammtisch trifft sich im Ochsen.',
    second: 'Der Ochsen hat zugemacht, der Stammtisch trifft sich seitdem in der Linde.',
    query: 'wo trifft sich der Stammtisch',
  },
  {
    first: 'Our ticket system is Jira.',
    second: 'We dropped Jira for Linear, all tickets are there.',
    query: 'which ticket system do we use',
  },
  {
    first: 'The desk in the coworking space costs 240 euros a month.',
    second: 'The coworking desk went up to 290 euros.',
    query: 'how much is the coworking desk',
  },
  {
    first: 'Marta leads the design guild.',
    second: 'Ravi became lead of the design guild when Marta left.',
    query: 'who leads the design guild',
  },
  // getzep/graphiti#1841
  {
    first: 'Kiran lives in Whitefield.',
    second: 'Kiran moved from Whitefield to Electronic City.',
    query: 'where does Kiran live',
  },
  // getzep/graphiti#139
  {
    first: 'Nicholas is drinking green tea.',
    second: 'Nicholas stopped drinking green tea.',
    query: 'what is Nicholas drinking',
  },
  {
    first: 'We use Redis for the sessions.',
    second: 'We no longer use Redis for the sessions.',
    query: 'what do we use for the sessions',
  },
  {
    first: 'Unsere Buchhaltung macht Frau Petersen.',
    second: 'Frau Petersen wurde in der Buchhaltung von Herrn Nagel abgelöst.',
    query: 'wer macht die Buchhaltung',
  },
  {
    first: 'Mein Stromanbieter ist Lichtblick.',
    second: 'Ich habe den Stromanbieter gewechselt, seit Mai ist es Naturstrom.',
    query: 'welchen Stromanbieter habe ich',
  },
  {
    first: 'Die Praxis von Doktor Ahrens ist in der Lindenstraße.',
    second: 'Doktor Ahrens ist mit der Praxis umgezogen, in die Marktgasse.',
    query: 'wo ist die Praxis von Doktor Ahrens',
  },
  {
    first: 'Die Rechnungen verschickt das Programm Faktura.',
    second: 'Die Rechnungen haben wir auf das Programm Lexware umgestellt.',
    query: 'mit welchem Programm verschicken wir Rechnungen',
  },
  {
    first: 'Der Chor probt dienstags in der Aula.',
    second: 'Der Chor zieht in die Kapelle um, geprobt wird weiter dienstags.',
    query: 'wo probt der Chor',
  },
  {
    first: 'Das Modul für die Tarife heißt Kranich.',
    second: 'Das Modul für die Tarife heißt jetzt Pelikan.',
    query: 'wie heißt das Modul für die Tarife',
  },
  {
    first: 'The release manager is Pavel.',
    second: 'Pavel stepped down, Aisha is release manager.',
    query: 'who is the release manager',
  },
  {
    first: 'Unser Trainer ist Jonas.',
    second: 'Jonas hört auf, Trainer ist ab Juni Mehmet.',
    query: 'wer ist unser Trainer',
  },
  {
    first: 'Der Kurs hat 20 Plätze.',
    second: 'Der Kurs wurde auf 30 Plätze aufgestockt.',
    query: 'wie viele Plätze hat der Kurs',
  },
  {
    first: 'Das Training kostet 12 Euro.',
    second: 'Das Training ist auf 15 Euro gestiegen.',
    query: 'was kostet das Training',
  },
];

const NO_CHANGES: readonly Pair[] = [
  {
    first: 'We live in Hamburg.',
    second: 'I do not live in Berlin.',
    query: 'where do we live',
  },
  {
    first: 'We use MySQL for the invoices.',
    second: 'If we moved the invoices from MySQL to Postgres, the reports would be faster.',
    query: 'which database do we use for the invoices',
  },
  {
    first: 'We use Slack for the on-call chat.',
    second: 'Maybe we should switch the on-call chat from Slack to Zulip.',
    query: 'what do we use for the on-call chat',
  },
  {
    first: 'Our office is in the Mill Lane building.',
    second: 'Anna said: "we moved our office from the Mill Lane building to the harbour".',
    query: 'where is our office',
  },
  {
    first: 'The newsletter goes out on Thursdays.',
    second: 'did we move the newsletter from Thursdays to Mondays',
    query: 'when does the newsletter go out',
  },
  // samvallad33/vestige#134
  {
    first: 'Use the async runtime for the worker pool.',
    second: 'Do not forget to configure the async runtime for the worker pool.',
    query: 'what do we use for the worker pool',
    isEither: true,
  },
  {
    first: 'staging runs on Postgres 15',
    second: 'production now runs on Postgres 16',
    query: 'which Postgres does staging run on',
  },
  // mnemon-dev/mnemon#134
  {
    first: 'Project Alpha uses PostgreSQL 15 for persistent application storage',
    second: 'Project Beta now uses MariaDB 11 for persistent application storage',
    query: 'what does Project Alpha use for storage',
  },
  {
    first: 'Wir wohnen in Kiel.',
    second: 'Wären wir von Kiel nach Lübeck umgezogen, hätten wir einen Garten.',
    query: 'in welcher Stadt wohnen wir',
  },
  {
    first: 'Der Server läuft auf Debian.',
    second: 'Vielleicht stellen wir den Server von Debian auf Alpine um.',
    query: 'worauf läuft der Server',
  },
  {
    first: 'Die Besprechung ist mittwochs um zehn.',
    second: 'Nein, die Besprechung wurde nicht verschoben.',
    query: 'wann ist die Besprechung',
  },
  {
    first: 'Das Büro in Köln schließt um 18 Uhr.',
    second: 'Das Büro in Bonn schließt jetzt um 17 Uhr.',
    query: 'wann schließt das Büro in Köln',
  },
  {
    first: 'The gym opens at 7.',
    second: 'The gym may change when it opens.',
    query: 'when does the gym open',
  },
  {
    first: 'Our sponsor is Brauhaus Nord.',
    second: 'Rumour has it that Brauhaus Nord is no longer our sponsor.',
    query: 'who is our sponsor',
  },
  {
    first: 'Der Kurs hat 20 Plätze.',
    second: 'Wurde der Kurs auf 30 Plätze erhöht',
    query: 'wie viele Plätze hat der Kurs',
  },
  {
    first: 'Wir nutzen Jira für Tickets.',
    second: 'Ich überlege, Jira für Tickets durch Linear zu ersetzen.',
    query: 'was nutzen wir für Tickets',
  },
  {
    first: 'Die Kita Sonne schließt um 16 Uhr.',
    second: 'Die Kita Mond schließt ab jetzt um 15 Uhr.',
    query: 'wann schließt die Kita Sonne',
  },
  {
    first: 'The backup of the wiki runs on Monday.',
    second: 'The backup of the shop moved to Friday.',
    query: 'when does the backup of the wiki run',
  },
  {
    first: 'The API in the EU region allows 100 requests.',
    second: 'The API in the US region now allows 500 requests.',
    query: 'how many requests does the API in the EU region allow',
  },
  {
    first: 'Der Kurs hat 20 Plätze.',
    second: 'Es stimmt nicht, dass der Kurs auf 30 Plätze erhöht wurde.',
    query: 'wie viele Plätze hat der Kurs',
    isEither: true,
  },
  {
    first: "Mira's phone extension is 4417",
    second: 'Mira is on holiday until the 3rd',
    query: "What is Mira's extension?",
  },
  {
    first: 'Die Durchwahl von Mira ist 4417.',
    second: 'Mira ist bis zum 3. im Urlaub.',
    query: 'Wie lautet Miras Durchwahl?',
  },
  {
    first: 'We use Kafka for events.',
    second: 'We have not moved the events off Kafka.',
    query: 'what do we use for events',
    isEither: true,
  },
];

describe('a turn that says that something has changed replaces what was said before', () => {
  test.each(CHANGES)('"$first" is replaced by "$second"', async (pair) => {
    expect(await judged(pair)).toMatchObject({ best: pair.second, isReplaced: true });
  });
});

describe('a turn that says of nothing that it has changed replaces nothing', () => {
  test.each(NO_CHANGES)('"$first" is not replaced by "$second"', async (pair) => {
    const { best, mark } = await judged(pair);
    expect(mark).toBeUndefined();
    expect(pair.isEither === true ? [pair.first, pair.second] : [pair.first]).toContain(best);
  });
});

const CLASSES = {
  qualified:
    'a special one of what the question names is told apart from it, and a new or monthly one is not',
  possessor: 'what belongs to somebody else is told apart from what the question names',
  environment: 'environments are told apart',
  people: 'people are told apart also if what is said of them is said in other words',
  number: 'a word that only begins like a number is no answer to a question for one',
  perfect: 'a question what somebody has is about the present, and one what somebody had about the past',
  denial: 'what a thing is not is no answer to a question what it is, and that it is so no longer is one',
};

describe('of two turns, 77 pairs by class', () => {
  const lines = readFileSync(new URL('subject-pairs.txt', import.meta.url), 'utf8').split('\n');
  const pairs = lines
    .filter((line) => line.includes(' | ') && !line.startsWith('#'))
    .map((line) => line.split(' | '));

  test.each(Object.entries(CLASSES))('%s: %s', async (kind) => {
    const own = pairs.filter(([name]) => name === kind);
    expect(own.length).toBeGreaterThan(7);
    const misjudged: string[] = [];
    for (const [, right, first = '', second = '', query = ''] of own) {
      const { best, isReplaced } = await judged({ first, second, query });
      const isRight =
        best === (right === 'news' ? second : first) &&
        (right === 'first' || isReplaced === (right === 'news'));
      if (!isRight) misjudged.push(`${first} ${second} ${query}`);
    }
    expect(misjudged).toEqual([]);
  });
});
