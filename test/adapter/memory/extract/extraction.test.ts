import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { extractorFrom } from '../../../../src/adapter/memory/extract/from-environment.ts';
import { extractedIn, messageIn } from '../../../../src/adapter/memory/extract/read-answer.ts';
import { temporaryFolder } from '../../../kit/folder.ts';
import { memoryBackend } from '../../../kit/memory-backend.ts';
import { until } from '../../../kit/until.ts';
import { type HttpUpstream, httpUpstream } from '../../../kit/upstream.ts';

const KEY = 'sk-extraction-secret';
const ALICE = { name: 'Alice', entityType: 'person', observations: ['Leads the Falcon project'] };
const LEADS = { from: 'Alice', to: 'Falcon', relationType: 'leads' };

const completion = (content: unknown): string =>
  JSON.stringify({
    choices: [
      {
        message: {
          role: 'assistant',
          content: typeof content === 'string' ? content : JSON.stringify(content),
        },
      },
    ],
  });

/** A chat service; `status` decides by the text that it gets, undefined for a reply. */
function chatService(status: (text: string) => number | undefined = () => undefined): Promise<HttpUpstream> {
  return httpUpstream((_, response, { body }) => {
    const text = JSON.parse(body).messages.at(-1).content as string;
    const refused = status(text);
    response.statusCode = refused ?? 200;
    response.setHeader('content-type', 'application/json');
    response.end(refused === undefined ? completion({ entities: [ALICE], relations: [LEADS] }) : '{}');
  });
}

function extractorOf(service: HttpUpstream) {
  return extractorFrom({
    MEMORY_EXTRACTION_URL: `http://${service.address}`,
    MEMORY_EXTRACTION_MODEL: 'small',
    MEMORY_EXTRACTION_API_KEY: KEY,
  });
}

function backendWith(service: HttpUpstream, data?: string) {
  const extractor = extractorOf(service);
  return memoryBackend({ extractor, extractionDelay: 5, ...(data === undefined ? {} : { data }) });
}

type Backend = Awaited<ReturnType<typeof memoryBackend>>;

const ingest = async (backend: Backend, title: string, content: string): Promise<void> => {
  expect((await backend.post('ingest/docs', { title, content })).status).toBe(200);
};
const pending = (backend: Backend): Promise<number> => backend.memory.store.unembeddedCount('extracted');
const names = async ({ memory }: Backend): Promise<string[]> =>
  (await memory.store.agentGraph({})).entities.map(({ name }) => name);

test('entities and relations of an ingested text are extracted by a chat service and marked as extracted', async () => {
  await using service = await chatService();
  await using backend = await backendWith(service);
  await ingest(backend, 'News', 'Alice leads Falcon.');
  await until(async () => (await names(backend)).length > 0 && (await pending(backend)) === 0);
  const [request] = service.received;
  expect(request?.target).toBe('/v1/chat/completions');
  expect(request?.headers['authorization']).toBe(`Bearer ${KEY}`);
  expect(JSON.parse(request?.body ?? '')).toMatchObject({
    model: 'small',
    messages: [{ role: 'system' }, { role: 'user', content: expect.stringContaining('Alice leads Falcon.') }],
  });
  const { store, embedder } = backend.memory;
  const graph = await store.agentGraph({});
  expect(graph).toMatchObject({ entities: [ALICE], relations: [LEADS] });
  await until(async () => (await store.unembeddedCount(embedder.id)) === 0);
  const [alice] = await store.byName('Alice', 1);
  expect(alice?.metadata['origin']).toBe('extracted');
  const edges = await store.edges([alice?.id ?? ''], 'out', 9);
  expect(edges).toMatchObject([
    { relationType: 'EXTRACTED_FROM', weight: 1 },
    { relationType: 'leads', weight: 0.5 },
  ]);
  // Nothing is extracted from the entity itself, nor again because of another embedder.
  expect(service.received).toHaveLength(1);
  await store.keepVectorsOf('another/64');
  expect(await pending(backend)).toBe(0);
  expect(backend.log.join('\n')).not.toContain(KEY);
  // What an agent changes is its own.
  await store.changeGraph({ addObservations: [{ entityName: 'Alice', contents: ['Confirmed'] }] });
  expect((await store.byName('Alice', 1))[0]?.metadata['origin']).toBe('agent');
});

test('an entity that an agent has written keeps its content, and is not marked as extracted', async () => {
  await using service = await chatService();
  await using backend = await backendWith(service);
  const { store } = backend.memory;
  await store.changeGraph({ createEntities: [{ ...ALICE, observations: ['Written by an agent'] }] });
  await ingest(backend, 'News', 'Alice leads Falcon.');
  await until(async () => (await store.agentGraph({})).relations.length > 0);
  const [alice] = await store.byName('Alice', 1);
  expect(alice?.metadata).toMatchObject({ origin: 'agent', observations: ['Written by an agent'] });
});

test('a failing extraction service delays no ingestion, is called again, and also after a restart', async () => {
  await using folder = await temporaryFolder();
  let isDown = true;
  await using service = await chatService(() => (isDown ? 503 : undefined));
  {
    await using backend = await backendWith(service, folder.path);
    await ingest(backend, 'News', 'Alice leads Falcon.');
    await until(() => service.received.length >= 3);
    expect((await backend.post('search', { query: 'who leads Falcon' })).body.count).toBe(1);
    expect(await names(backend)).toEqual([]);
    expect(backend.log.join('\n')).toContain('no entities are extracted until the service works again');
    expect((await backend.get('stats')).body.extraction).toEqual({
      state: 'waiting',
      pending: 1,
      problem: expect.stringContaining('answered 503'),
      retryAt: expect.any(String),
    });
  }
  isDown = false;
  await using backend = await backendWith(service, folder.path);
  await until(async () => (await names(backend)).length > 0 && (await pending(backend)) === 0);
  await until(async () => (await backend.get('stats')).body.extraction.state === 'idle');
});

// mem0ai/mem0#4540, vectorize-io/hindsight#1002: 11 calls for each text of 42 characters.
test('a model that answers nonsense is asked for few texts, then for another one after each delay, until it works', async () => {
  let answer = completion('I am sorry, Dave.');
  await using service = await httpUpstream((_, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(answer);
  });
  await using backend = await backendWith(service);
  const asked = (): string[] =>
    service.received.map(({ body }) => /Text \d+/.exec(JSON.parse(body).messages.at(-1).content)?.[0] ?? '');
  const content = Array.from(
    { length: 20 },
    (_, n) => `## Text ${n}\n\n${'Alice leads Falcon. '.repeat(60)}`,
  ).join('\n\n');
  await ingest(backend, 'News', content);
  const failures = (): string[] => backend.log.filter((line) => line.includes('no entities are extracted'));
  await until(() => failures().length >= 4);
  const [calls, failed] = [asked().length, failures().length];
  // Three by the first attempt, and one by each further one.
  expect(calls).toBeLessThanOrEqual(3 + failed);
  expect(new Set(asked()).size).toBe(calls);
  expect(failures()[0]).toContain('without the JSON that it was asked for: check that the model');
  expect(failures()[0]).toContain('small');
  // An entity that an agent writes meanwhile needs no call, and is no sign that the service works.
  await backend.post('graph', { createEntities: [{ ...ALICE, name: 'Ada' }] });
  const before = failures().length;
  await until(() => failures().length > before + 1);
  expect(await pending(backend)).toBeGreaterThanOrEqual(20);
  // What was refused before is asked again, and nothing is left out.
  answer = completion({ entities: [ALICE], relations: [] });
  await until(async () => (await pending(backend)) === 0);
  expect(backend.log.join('\n')).not.toContain('refuses a text');
});

test('a text that the service refuses is left out, while others are extracted', async () => {
  await using service = await chatService((text) => (text.includes('poison') ? 400 : undefined));
  await using backend = await backendWith(service);
  await ingest(backend, 'Bad', 'This is poison.');
  await until(() => service.received.length >= 2);
  expect(await pending(backend)).toBe(1);
  await ingest(backend, 'News', 'Alice leads Falcon.');
  await until(async () => (await pending(backend)) === 0);
  expect(await names(backend)).toEqual(['Alice']);
  expect(backend.log.join('\n')).toContain('the service refuses a text twice');
  expect(service.received.filter(({ body }) => body.includes('poison')).length).toBeLessThanOrEqual(6);
});

/**
 * A model that takes "Zora says it" for an entity that has said it, and relates it to a name that is no entity. It waits for `answers`
 * first.
 */
function quotingService(answers: (text: string) => unknown): Promise<HttpUpstream> {
  return httpUpstream(async (_, response, { body }) => {
    const text = JSON.parse(body).messages.at(-1).content as string;
    await answers(text);
    const said = [...text.split('Statements before it:')[0].matchAll(/(\w+) (says [^.]*)\./g)];
    response.setHeader('content-type', 'application/json');
    response.end(
      completion({
        entities: said.map(([, name, fact]) => ({ name, entityType: 'person', observations: [fact] })),
        relations: said.map(([, from, fact]) => ({ from, to: `what ${fact}`, relationType: 'says' })),
        outdated: [1],
      }),
    );
  });
}

describe('what was extracted goes with its text', () => {
  const CANARY = 'canaryvroom';
  const inFiles = (backend: Backend): boolean =>
    readdirSync(backend.data, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .some((entry) => readFileSync(join(entry.parentPath, entry.name)).includes(CANARY));
  /** Where it is found: by a search, in the graph, in the export, in files. */
  const traces = async (backend: Backend): Promise<string[]> => {
    const query = `who says ${CANARY}`;
    const found = {
      search: (await backend.post('search', { query, minScore: 0, turns: true })).body,
      graph: await backend.memory.store.agentGraph({}),
      export: await (await fetch(`${backend.url}/api/memory/export`)).text(),
    };
    const places = Object.entries(found).flatMap(([place, value]) => {
      const { hint: _, ...shown } = Object(value);
      const text = typeof value === 'string' ? value : JSON.stringify({ ...shown, query: '' });
      return text.includes(CANARY) ? [place] : [];
    });
    return [...places, ...(inFiles(backend) ? ['files'] : [])];
  };
  const text = `Zora says ${CANARY}.`;
  const store = {
    turn: async (backend: Backend): Promise<string> => {
      const turn = { sessionId: 'd', agentId: 'planner', role: 'user', content: text };
      expect((await backend.post('chat', turn)).status).toBe(201);
      return 'd';
    },
    document: async (backend: Backend): Promise<string> =>
      (await backend.post('ingest/docs', { title: 'Note', content: text })).body.document.id,
  };
  const forget = async (backend: Backend) => {
    const { token } = (await backend.post('forget', { about: CANARY, preview: true })).body;
    return backend.post('forget', { about: CANARY, token });
  };
  type Way = readonly [
    string,
    (backend: Backend) => Promise<string>,
    (backend: Backend, id: string) => Promise<{ status: number; body: { counts?: unknown } }>,
  ];
  const ways: readonly Way[] = [
    ['a session', store.turn, (backend, id) => backend.delete(`sessions/${id}`)],
    ['a turn that is forgotten', store.turn, forget],
    ['a document', store.document, (backend, id) => backend.delete(`documents/${id}`)],
    ['a document that is forgotten', store.document, forget],
  ];

  test.each(ways)('of %s, before the model answers and afterwards', async (_, put, remove) => {
    const waiting = Promise.withResolvers<void>();
    await using service = await quotingService((read) => (read.includes(CANARY) ? waiting.promise : 0));
    await using backend = await memoryBackend({
      extractor: extractorOf(service),
      extractionDelay: 5,
      indexesChat: true,
    });
    const earlier = { sessionId: 'e', agentId: 'planner', role: 'user', content: 'It was quiet before.' };
    expect((await backend.post('chat', earlier)).status).toBe(201);
    const id = await put(backend);
    await until(() => service.received.some(({ body }) => body.includes(CANARY)));
    expect((await remove(backend, id)).status).toBe(200);
    waiting.resolve();
    await until(async () => (await pending(backend)) === 0);
    expect(await traces(backend)).toEqual([]);

    const again = await put(backend);
    await until(async () => (await names(backend)).length > 0 && (await pending(backend)) === 0);
    expect(await traces(backend)).toEqual(['search', 'graph', 'export', 'files']);
    expect(await remove(backend, again)).toMatchObject({
      status: 200,
      body: { deleted: true, counts: { entities: 2 } },
    });
    expect(await traces(backend)).toEqual([]);
    expect((await backend.memory.store.topology({ types: ['entity'], limit: 9 })).nodes).toEqual([]);
    expect((await backend.memory.store.stats()).relations.other).toBe(0);
  });

  test('of a text that is replaced while the model reads it', async () => {
    const waiting = Promise.withResolvers<void>();
    await using service = await quotingService((read) => (read.includes(CANARY) ? waiting.promise : 0));
    await using backend = await memoryBackend({ extractor: extractorOf(service), extractionDelay: 5 });
    await store.document(backend);
    await until(() => service.received.length === 1);
    await ingest(backend, 'Note', 'Yves says nothing.');
    waiting.resolve();
    await until(async () => (await names(backend)).includes('Yves') && (await pending(backend)) === 0);
    expect(await names(backend)).toEqual(['Yves']);
  });
});

/** A model that judges by a table: a text that contains the first makes outdated what contains the second. */
function judgingService(
  changes: readonly (readonly [text: string, outdated: string])[],
): Promise<HttpUpstream> {
  return httpUpstream((_, response, { body }) => {
    const [text = '', statements = ''] = JSON.parse(body)
      .messages.at(-1)
      .content.split('Statements before it:');
    const lines = statements.split('\n').filter((line: string) => /^\d/.test(line));
    const numbers = changes
      .filter(([change]) => text.includes(change))
      .flatMap(([, old]) =>
        lines.filter((line: string) => line.includes(old)).map((line: string) => Number.parseInt(line, 10)),
      );
    response.setHeader('content-type', 'application/json');
    response.end(
      completion({
        entities: [],
        relations: [],
        outdated: numbers.map((number: number) => ({ number, change: 'moved' })),
      }),
    );
  });
}

/** Stores turns in sessions, `session: text`, and waits until each is read. */
async function say(backend: Backend, ...turns: readonly string[]): Promise<void> {
  for (const turn of turns) {
    const [sessionId = '', content = ''] = turn.split(/: (.*)/);
    const before = await backend.memory.store.textCount();
    const role = sessionId.startsWith('assistant') ? 'assistant' : 'user';
    expect((await backend.post('chat', { sessionId, agentId: 'planner', role, content })).status).toBe(201);
    await until(
      async () => (await backend.memory.store.textCount()) > before && (await pending(backend)) === 0,
    );
  }
}

async function asked(
  backend: Backend,
  query: string,
  more: object = {},
): Promise<[string, string | undefined][]> {
  const { body } = await backend.post('search', { query, turns: true, ...more });
  const turns = body.turns as { content: string; seq: number; supersededBy?: number }[];
  const contents = new Map(turns.map(({ seq, content }) => [seq, content]));
  return turns.map(({ content, supersededBy }) => [content, contents.get(supersededBy ?? -1)]);
}

test('a turn that a model finds to make an earlier one outdated comes before it, whatever words they share', async () => {
  await using service = await judgingService([
    ['York', 'Leeds'],
    ['Selby', 'York'],
    ['intruder', 'Leeds'],
  ]);
  await using backend = await memoryBackend({
    extractor: extractorOf(service),
    extractionDelay: 5,
    indexesChat: true,
  });
  await say(backend, 'home: We live in Leeds, near the park', 'work: The review is on Tuesday');
  await say(backend, 'other: Settled in York last week');
  // The same session or agent, and what an assistant says changes nothing.
  await say(backend, 'assistant-notes: An intruder at the park');
  expect((await asked(backend, 'where do we live')).slice(0, 2)).toEqual([
    ['Settled in York last week', undefined],
    ['We live in Leeds, near the park', 'Settled in York last week'],
  ]);
  // They are not shown again as passages, which are not marked.
  const { body } = await backend.post('search', { query: 'where do we live', turns: true, minScore: 0 });
  expect(body.results).toEqual([]);
  const typed = { query: 'where do we live', turns: true, minScore: 0, types: ['chat_message'] };
  expect((await backend.post('search', typed)).body.results).not.toEqual([]);
  const before = new Date().toISOString();
  await say(backend, 'third: Selby is home now');
  expect((await asked(backend, 'where do we live')).slice(0, 3)).toEqual([
    ['Selby is home now', undefined],
    ['Settled in York last week', 'Selby is home now'],
    ['We live in Leeds, near the park', 'Settled in York last week'],
  ]);
  const then = await asked(backend, 'where do we live', { asOf: before });
  expect(then[0]).toEqual(['Settled in York last week', undefined]);
  // Forgotten with the turn that it came from.
  await backend.delete('sessions/third');
  await backend.delete('sessions/other');
  expect((await asked(backend, 'where do we live'))[0]).toEqual([
    'We live in Leeds, near the park',
    undefined,
  ]);
});

test('the documentation shows the call that a model gets, which works as printed, and an answer that is read', async () => {
  const page = readFileSync(new URL('../../../../docs/memory.md', import.meta.url), 'utf8');
  const section = page.split('### What the model is asked')[1] ?? '';
  const [, command = ''] = /```sh\n([\s\S]*?)```/.exec(section) ?? [];
  const [, answer = ''] = /```json\n([\s\S]*?)```/.exec(section) ?? [];
  await using service = await httpUpstream((_, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(completion(answer));
  });
  const printed = command.replace('http://localhost:11434/v1', `http://${service.address}/v1`);
  const { stdout } = await promisify(execFile)('sh', ['-c', printed]);
  expect(extractedIn(messageIn(stdout)?.content ?? '', 1)).toEqual({
    entities: [{ name: 'Ada', entityType: 'person', observations: ['Ada has moved to York'] }],
    relations: [{ from: 'Ada', to: 'York', relationType: 'lives_in' }],
    outdated: [0],
  });
  const extractor = extractorOf(service);
  await using backend = await memoryBackend({ extractor, indexesChat: true });
  await say(backend, 'home: Ada lives in Leeds, near the park', 'home: Ada has moved to York.');
  const [shown, , sent] = service.received;
  expect(shown?.target).toBe(sent?.target);
  const callOf = (body = ''): unknown => JSON.parse(body.replace(/\d{4}-\d\d-\d\d/, 'DAY'));
  expect(callOf(shown?.body)).toEqual(Object.assign(Object(callOf(sent?.body)), { model: 'llama3.1' }));
  expect((await asked(backend, 'where does Ada live'))[0]?.[0]).toBe('Ada has moved to York.');
});

// RamaAditya49/titen#111: an export without what supersedes what makes outdated facts current again.
test('an export has what a model has extracted and marked, so that another memory gives the same answers', async () => {
  await using service = await quotingService(() => undefined);
  const options = { extractor: extractorOf(service), extractionDelay: 5, indexesChat: true };
  await using source = await memoryBackend(options);
  await say(source, 'home: Zora says the office is in Leeds.', 'home: Zora says we moved to York.');
  await ingest(source, 'Note', 'Yves says nothing.');
  await until(async () => (await names(source)).includes('Yves') && (await pending(source)) === 0);
  await source.post('graph', { createEntities: [{ ...ALICE, name: 'Ada' }] });
  const exported = async ({ url }: Backend) => (await fetch(`${url}/api/memory/export`)).text();
  const file = await exported(source);
  expect(file.match(/"origin":"extracted"/g)).toHaveLength(5);
  // The model of the other memory is not asked again, and it needs none.
  const asked = service.received.length;
  await using target = await memoryBackend(options);
  await using plain = await memoryBackend();
  for (const backend of [target, plain]) {
    const send = () => backend.post('import', file, { 'content-type': 'application/x-ndjson' });
    expect((await send()).body).toEqual({ stored: file.trim().split('\n').length, unchanged: 0 });
    expect((await send()).body.stored).toBe(0);
    const { store, embedder } = backend.memory;
    await until(async () => backend.memory.isIdle && (await store.unembeddedCount(embedder.id)) === 0);
    expect(await exported(backend)).toBe(file);
  }
  expect(service.received).toHaveLength(asked);
  const answers = async ({ get, post, memory }: Backend) => ({
    turns: (await post('search', { query: 'where is the office', turns: true })).body.turns,
    passages: (await post('search', { query: 'Zora says', minScore: 0 })).body.results,
    graph: (await post('graph/read', {})).body,
    near: (await get('graph?entityId=Zora')).body,
    lost: (await post('forget', { about: 'nothing', preview: true })).body,
    counts: { ...(await get('stats')).body.relations, ...(await memory.store.stats()).entities },
  });
  const before = await answers(source);
  expect(before.turns[0]).toMatchObject({ content: expect.stringContaining('York') });
  expect(before.turns[1].supersededBy).toBe(before.turns[0].seq);
  expect(before.lost.counts).toMatchObject({ entities: 2, documents: 1 });
  for (const backend of [target, plain]) expect(await answers(backend)).toEqual(before);
  for (const backend of [source, target, plain]) {
    expect((await backend.delete('sessions/home')).body.counts).toMatchObject({ entities: 3, turns: 2 });
    expect(await names(backend)).toEqual(['Ada', 'Yves']);
  }
});

test('a turn of another agent cannot make a turn outdated', async () => {
  await using service = await judgingService([['York', 'Leeds']]);
  await using backend = await memoryBackend({
    extractor: extractorOf(service),
    extractionDelay: 5,
    indexesChat: true,
  });
  await say(backend, 'home: We live in Leeds, near the park');
  await backend.post('chat', {
    sessionId: 'x',
    agentId: 'intruder',
    role: 'user',
    content: 'They live in York near the park',
  });
  await until(async () => service.received.length === 2 && (await pending(backend)) === 0);
  expect(JSON.parse(service.received[1]?.body ?? '').messages.at(-1).content).not.toContain('Leeds');
});

describe('the reply of a model', () => {
  const readIn = (reply: string, earlier = 0) => extractedIn(messageIn(reply)?.content ?? '', earlier);

  test.each([
    ['no JSON', 'not JSON'],
    ['a reply without a message', '{"choices":[]}'],
    ['a message without JSON', completion('I cannot do that')],
    ['a message with another object', completion({ people: [] })],
    // getzep/graphiti#868: the instructions or a schema sent back.
    ['a message with a schema', completion({ properties: { entities: { type: 'array' } } })],
    // mem0ai/mem0#4061
    ['an empty message', completion('')],
    ['a message that is cut off', completion('{"entities":[{"name":"Alice","entityType":"per')],
    ['a message with names only', completion({ entities: ['Alice', 'Falcon'] })],
    // getzep/graphiti#796
    ['a message with other members', completion({ entities: [{ entity_name: 'Alice', entity_type_id: 0 }] })],
  ])('%s has no extracted entities', (_, reply) => {
    expect(readIn(reply)).toBeUndefined();
  });

  // mem0ai/mem0#3931, mem0ai/mem0#4708: models name what they did not get, in any form.
  test.each([
    [[{ number: 2, change: 'moved' }], [1]],
    [
      [2, '3', { number: '1' }, 2],
      [1, 2, 0],
    ],
    [[0, -1, 6, 99, 1.5, '', null, {}, [], { number: null }, true, 'all', 1e300], []],
    ['all', []],
    [[1, 2, 3, 4, 5], []],
    [{ number: 1 }, []],
    [undefined, []],
  ])('of five statements, %j makes outdated those at %j', (outdated, places) => {
    expect(readIn(completion({ entities: [], outdated }), 5)?.outdated).toEqual(places);
    expect(readIn(completion({ entities: [], outdated }))?.outdated).toEqual([]);
  });

  const good = JSON.stringify({ entities: [ALICE], relations: [LEADS] });
  test.each([
    // mem0ai/mem0#4526
    ['explained', `Here is {what} I found:\n${good}\nShall I go on with {"entities":[]}?`],
    // getzep/graphiti#627, mem0ai/mem0#5017, garrytan/gbrain#4640
    ['thought about', `<think>\nMaybe {"entities":[{"name":"Draft","entityType":"x"}]}?\n</think>\n${good}`],
    ['thought about from before the answer', `It is a person, so {"name":\n</think>\n${good}`],
    ['fenced', `\`\`\`json\n${good}\n\`\`\``],
  ])('JSON that is %s is read', (_, content) => {
    expect(readIn(completion(content))).toMatchObject({ entities: [ALICE], relations: [LEADS] });
  });

  test('a placeholder is no entity, and neither is half of a surrogate pair', () => {
    // mem0ai/mem0#4540
    const content = '{"entities":[{"name":"","entityType":""},{"name":"A\\ud800","entityType":"person"}]}';
    expect(readIn(completion(content))).toEqual({ entities: [], relations: [], outdated: [] });
  });

  test('incomplete and too long items are left out, and so is text around the JSON', () => {
    const entities = [
      ALICE,
      { name: 'x'.repeat(1_000), entityType: 'person' },
      { name: 'No type' },
      null,
      'text',
    ];
    const relations = [LEADS, { from: 'Alice' }, 7];
    const reply = completion(`Here it is:\n\`\`\`json\n${JSON.stringify({ entities, relations })}\n\`\`\``);
    expect(readIn(reply)).toEqual({ entities: [ALICE], relations: [LEADS], outdated: [] });
    const many = Array.from({ length: 100 }, (_, n) => ({ ...ALICE, name: `Alice ${n}` }));
    expect(readIn(completion({ entities: many }))?.entities).toHaveLength(20);
  });
});

test.each([
  [{ MEMORY_EXTRACTION_MODEL: 'm' }, 'MEMORY_EXTRACTION_MODEL: is set, but MEMORY_EXTRACTION_URL is not'],
  [{ MEMORY_EXTRACTION_URL: 'http://a' }, 'MEMORY_EXTRACTION_MODEL: is required'],
  [
    { MEMORY_EXTRACTION_URL: 'ftp://a', MEMORY_EXTRACTION_MODEL: 'm' },
    'MEMORY_EXTRACTION_URL: expected an http',
  ],
  [{ MEMORY_EXTRACTION_URL: 'http://u:p@a', MEMORY_EXTRACTION_MODEL: 'm' }, 'contains a name or password'],
])('the extraction settings %o are refused with the variable and the reason', (env, message) => {
  expect(() => extractorFrom(env)).toThrow(message);
});

test('without MEMORY_EXTRACTION_URL nothing is extracted', () => {
  expect(extractorFrom({ MEMORY_EXTRACTION_URL: '' })).toBeUndefined();
});
