import { createHash } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { endpoints } from '../../../../src/adapter/memory/http/endpoints/index.ts';
import { type NamespaceKeys, namespaceKeysFrom } from '../../../../src/adapter/namespace-keys.ts';
import { temporaryFolder } from '../../../kit/folder.ts';
import type { Json } from '../../../kit/mcp.ts';
import { memoryBackend, type RestReply, type TestBackend } from '../../../kit/memory-backend.ts';
import { send } from '../../../kit/send.ts';
import { until } from '../../../kit/until.ts';
import { recordingLog } from '../recording-log.ts';

const NAMESPACE = 'x-memory-namespace';
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** The keys of a file with this content. */
async function keysOf(content: string, others: readonly string[] = []): Promise<NamespaceKeys> {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'keys.yaml');
  writeFileSync(path, content);
  return namespaceKeysFrom(path, others, recordingLog());
}

const call = (backend: TestBackend, method: string, path: string, headers: Record<string, string> = {}) =>
  send(backend.url, { method, target: `/api/memory/${path}`, headers });

describe('the namespace of a call', () => {
  const keys = () => keysOf(`{ alice: alice-key, bob: ["bob-key", "sha256:${sha256('bob-hashed')}"] }`);
  const turns = async (backend: TestBackend, namespace: string): Promise<number> =>
    (await backend.memories.use(namespace, ({ store }) => store.stats())).turns;
  const store = (backend: TestBackend, headers: Record<string, string>) =>
    backend.post('chat', { sessionId: 's', role: 'user', content: 'x' }, headers);

  test('a key of a namespace selects it, in plain text and as hash', async () => {
    await using backend = await memoryBackend({ key: 'main-key', namespaceKeys: await keys() });
    expect((await store(backend, bearer('alice-key'))).status).toBe(201);
    expect((await store(backend, bearer('bob-key'))).status).toBe(201);
    expect((await store(backend, bearer('bob-hashed'))).status).toBe(201);
    expect([await turns(backend, 'alice'), await turns(backend, 'bob')]).toEqual([1, 2]);
    expect(await turns(backend, 'default')).toBe(0);
    // The hash itself is no key.
    expect((await store(backend, bearer(sha256('bob-hashed')))).status).toBe(401);
    expect((await store(backend, bearer(`sha256:${sha256('bob-hashed')}`))).status).toBe(401);
  });

  test('a key of a namespace with the header of another one is refused with 403', async () => {
    await using backend = await memoryBackend({ key: 'main-key', namespaceKeys: await keys() });
    const refused = await store(backend, { ...bearer('alice-key'), [NAMESPACE]: 'bob' });
    expect([refused.status, refused.body.error.code]).toEqual([403, 'forbidden']);
    expect(refused.body.error.message).toContain('the key belongs to another namespace');
    expect(JSON.stringify(refused.body)).not.toMatch(/alice|key-/);
    expect((await store(backend, { ...bearer('alice-key'), [NAMESPACE]: 'default' })).status).toBe(403);
    expect((await store(backend, { ...bearer('alice-key'), [NAMESPACE]: 'alice' })).status).toBe(201);
    expect(await turns(backend, 'bob')).toBe(0);
  });

  test('the header counts with the main key, and no header means `default`', async () => {
    await using backend = await memoryBackend({ key: 'main-key' });
    expect((await store(backend, { ...bearer('main-key'), [NAMESPACE]: 'auth0|42' })).status).toBe(201);
    expect((await store(backend, bearer('main-key'))).status).toBe(201);
    expect([await turns(backend, 'auth0|42'), await turns(backend, 'default')]).toEqual([1, 1]);
    expect((await store(backend, { [NAMESPACE]: 'alice' })).status).toBe(401);
    expect((await store(backend, { ...bearer('wrong'), [NAMESPACE]: 'alice' })).status).toBe(401);
  });

  test('the header counts where no key is needed, and keys of namespaces make keys needed', async () => {
    await using open = await memoryBackend();
    expect((await store(open, { [NAMESPACE]: 'alice' })).status).toBe(201);
    expect(await turns(open, 'alice')).toBe(1);
    await using closed = await memoryBackend({ namespaceKeys: await keys() });
    expect((await store(closed, {})).status).toBe(401);
    expect((await store(closed, { [NAMESPACE]: 'alice' })).status).toBe(401);
    expect((await store(closed, bearer('alice-key'))).status).toBe(201);
  });

  test.each(['', 'a b', 'a,b', 'caf\u00e9', 'x'.repeat(81)])(
    'the header %j is refused with 400, but only for callers with a key',
    async (name) => {
      await using backend = await memoryBackend({ key: 'main-key' });
      const refused = await call(backend, 'GET', 'stats', { ...bearer('main-key'), [NAMESPACE]: name });
      expect(refused.status).toBe(400);
      expect(JSON.parse(refused.text).error.message).toContain('`x-memory-namespace`: expected 1 to 80');
      expect((await call(backend, 'GET', 'stats', { [NAMESPACE]: name })).status).toBe(401);
    },
  );

  test('MEMORY_NAMESPACES=required refuses calls without a namespace, except those about all namespaces', async () => {
    await using backend = await memoryBackend({
      key: 'main-key',
      namespaceKeys: await keys(),
      requiresNamespace: true,
    });
    const refused = await store(backend, bearer('main-key'));
    expect([refused.status, refused.body.error.code]).toEqual([400, 'invalid']);
    expect(refused.body.error.message).toContain('`x-memory-namespace`');
    for (const namespace of ['alice', 'default'])
      expect((await store(backend, { ...bearer('main-key'), [NAMESPACE]: namespace })).status).toBe(201);
    expect((await store(backend, bearer('alice-key'))).status).toBe(201);
    expect((await backend.get('namespaces', bearer('main-key'))).status).toBe(200);
    expect((await backend.get('/health')).status).toBe(200);
  });

  test('no key appears in the log', async () => {
    await using backend = await memoryBackend({ key: 'main-key', namespaceKeys: await keys() });
    await store(backend, bearer('alice-key'));
    await store(backend, bearer('wrong-key'));
    expect(JSON.stringify(backend.log)).not.toMatch(/(main|alice|wrong|bob)-key/);
  });
});

describe('the file of namespace keys', () => {
  const SECRET = 'top-secret-key';

  test.each([
    [`[${SECRET}]`, 'expected an object'],
    [SECRET, 'expected an object'],
    ['', 'expected an object'],
    [`"a b": ${SECRET}`, '"a b": the name of a namespace'],
    [`alice: ["${SECRET} with spaces"]`, '"alice": expected a key'],
    ['alice: []', '"alice": expected a key or a list of keys'],
    ['alice: 12345', '"alice": expected a key'],
    ['alice: ""', '"alice": expected a key'],
    ['alice: { key: x }', '"alice": expected a key'],
    ['alice: sha256:ABC', '"alice": expected a key'],
    [`alice: ${SECRET}\nbob: ${SECRET}`, '"bob": the key is also that of "alice"'],
    [`alice: ${SECRET}\nbob: sha256:${sha256(SECRET)}`, '"bob": the key is also that of "alice"'],
    [`alice: "${SECRET}\nbob: [`, 'is not valid YAML or JSON'],
    ['alice: main-key', '"alice": the key is also MEMORY_API_KEY'],
  ])('%j is refused with the member and the problem, without the key', async (content, problem) => {
    const failure = await keysOf(content, ['main-key']).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'bad_request' });
    const { message } = failure as Error;
    expect(message).toContain('MEMORY_NAMESPACE_KEYS: ');
    expect(message).toContain(problem);
    expect(message).not.toContain(SECRET);
  });

  test('a missing file is named', () => {
    expect(() => namespaceKeysFrom('/nowhere/keys.yaml', [], recordingLog())).toThrow(
      'MEMORY_NAMESPACE_KEYS: /nowhere/keys.yaml: cannot be read (ENOENT)',
    );
  });

  test('a changed file is read again, and an invalid or missing one leaves the keys as they are', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'keys.yaml');
    const log = recordingLog();
    writeFileSync(path, 'alice: first-key');
    const keys = namespaceKeysFrom(path, [], log);
    expect(keys.namespaceOf('first-key')).toBe('alice');
    // As an editor or Kubernetes does it: another file takes the place.
    writeFileSync(`${path}.new`, 'alice: second-key\nbob: third-key');
    renameSync(`${path}.new`, path);
    await until(() => keys.namespaceOf('second-key') === 'alice');
    expect([keys.namespaceOf('first-key'), keys.namespaceOf('third-key')]).toEqual([undefined, 'bob']);
    writeFileSync(path, 'alice: [');
    await until(() => keys.namespaceOf('x') === undefined && log.lines.join().includes('not valid YAML'));
    expect(keys.namespaceOf('second-key')).toBe('alice');
    renameSync(path, `${path}.away`);
    await until(() => keys.namespaceOf('x') === undefined && log.lines.join().includes('ENOENT'));
    expect(keys.namespaceOf('second-key')).toBe('alice');
    expect(log.lines.join()).not.toMatch(/(first|second|third)-key/);
  });
});

/** Everything that A stored has this in its text. */
const MARK = 'crocodile';
const DOCUMENT = { title: 'Secret plan', content: `# Plan\n\nThe ${MARK} sleeps.`, source: 'plan' };
const TURN = { sessionId: 'chat-of-a', role: 'user', content: `the ${MARK} of a` };

/** What B asks with the ids, names, cursors and keys of A, by endpoint. */
function attempts(ids: Readonly<Record<'file' | 'chunk' | 'entity' | 'token', string>>) {
  const get = (path: string) => ({ method: 'GET', path });
  const remove = (path: string) => ({ method: 'DELETE', path });
  const post = (path: string, body?: object) => ({ method: 'POST', path, body });
  return {
    'POST /search': [post('search', { query: MARK, minScore: 0, limit: 50, debug: true })],
    'POST /chat': [post('chat', { ...TURN, content: 'of b' })],
    'GET /graph': [
      get(`graph?entityId=${ids.file}`),
      get(`graph?entityId=${ids.chunk}&direction=in`),
      get('graph?entityId=Secret%20plan'),
      get('graph?entityId=Secret%20plam'),
      get('graph'),
      get('graph?cursor=0'),
    ],
    'POST /graph': [
      post('graph', { deleteEntities: ['Crocodile'], deleteObservations: [] }),
      post('graph', { addObservations: [{ entityName: 'Crocodile', contents: ['of b'] }] }),
      post('graph', { createRelations: [{ from: 'Crocodile', to: 'Crocodile', relationType: 'of_b' }] }),
    ],
    'POST /graph/read': [
      post('graph/read'),
      post('graph/read', { names: ['Crocodile'] }),
      post('graph/read', { query: 'sleeps' }),
      post('graph/read', { cursor: 'A' }),
    ],
    'GET /turns': [
      get('turns'),
      get('turns?sessionId=chat-of-a'),
      get('turns?query=of&order=oldest&cursor=0'),
      get('turns?query=secret%20crocodile%20of%20whom&order=relevance'),
    ],
    'POST /forget': [
      post('forget', { about: 'sleeps', preview: true }),
      post('forget', { about: 'sleeps', token: ids.token }),
    ],
    'DELETE /sessions/:id': [remove('sessions/chat-of-a'), remove('sessions/chat-of-a?preview=true')],
    'DELETE /documents/:id': [
      remove(`documents/${ids.file}`),
      remove(`documents/${ids.file}?token=${ids.token}`),
    ],
    'DELETE /entities/:id': [remove(`entities/${ids.entity}`), remove(`entities/${ids.chunk}`)],
    'DELETE /relations': [remove('relations?from=Crocodile&to=Nile&relationType=in')],
    'GET /export': [get('export')],
    'POST /import': [post('import')],
    'POST /ingest/docs': [post('ingest/docs')],
    'GET /ingest/status': [get('ingest/status')],
    'GET /stats': [get('stats')],
    'GET /entities': [get('entities'), get('entities?query=secret'), get('entities?cursor=A')],
    'GET /entities/:id': [get(`entities/${ids.file}`), get(`entities/${ids.chunk}`)],
    'GET /sessions': [get('sessions'), get('sessions?cursor=99999')],
    'GET /sessions/:id/turns': [get('sessions/chat-of-a/turns')],
    'GET /namespaces': [get('namespaces')],
    'DELETE /namespaces/:name': [remove('namespaces/a')],
    'GET /namespaces/:name/backup': [get('namespaces/a/backup'), get('namespaces/default/backup')],
  };
}

/** What a namespace answers about all that it has. */
async function everything(ask: (request: Json) => Promise<RestReply>): Promise<Json> {
  const bodies = [];
  for (const path of ['graph?limit=100', 'sessions', 'turns', 'namespaces', 'export'])
    bodies.push((await ask({ method: 'GET', path })).body);
  bodies.push((await ask({ method: 'POST', path: 'graph/read' })).body);
  return bodies;
}

describe('a namespace sees nothing of another one', () => {
  async function twoNamespaces() {
    const backend = await memoryBackend({
      key: 'main-key',
      namespaceKeys: await keysOf('{ a: a-key, b: b-key }'),
      docs: { 'handbook.md': `# Handbook\n\nOf the ${MARK} in default.` },
      indexesChat: true,
    });
    const ask = (headers: Record<string, string>, { method, path, body }: Json): Promise<RestReply> =>
      method === 'POST'
        ? backend.post(path, body, { ...headers, 'idempotency-key': 'key-of-a' })
        : call(backend, method, path, headers).then(
            ({ status, text, headers: { 'content-type': type } }) => ({
              status,
              headers: new Headers(),
              body: type?.startsWith('application/json') ? JSON.parse(text) : text,
            }),
          );
    const a = (request: Json) => ask(bearer('a-key'), request);
    const { document } = (await a({ method: 'POST', path: 'ingest/docs', body: DOCUMENT })).body;
    const turn = (await a({ method: 'POST', path: 'chat', body: TURN })).body;
    const entity = { name: 'Crocodile', entityType: 'animal', observations: [`the ${MARK} sleeps`] };
    const river = { name: 'Nile', entityType: 'river', observations: [] };
    const createRelations = [{ from: 'Crocodile', to: 'Nile', relationType: 'in' }];
    await a({ method: 'POST', path: 'graph', body: { createEntities: [entity, river], createRelations } });
    const { root } = (await a({ method: 'GET', path: 'graph?entityId=Crocodile' })).body;
    const preview = { about: 'sleeps', preview: true };
    const { token } = (await a({ method: 'POST', path: 'forget', body: preview })).body;
    const graph = (await a({ method: 'GET', path: `graph?entityId=${document.id}` })).body;
    const chunk = graph.nodes.find(({ type }: Json) => type === 'doc_chunk').id;
    return {
      backend,
      a,
      b: (request: Json) => ask(bearer('b-key'), request),
      turn,
      ids: { file: document.id, chunk, entity: root.id, token },
    };
  }

  test('every endpoint called from B with ids, names, sessions, cursors and keys of A', async () => {
    const { backend, a, b, turn, ids } = await twoNamespaces();
    await using _ = backend;
    const asked = attempts(ids);
    const before = await everything(a);
    // A new endpoint needs its line.
    expect(Object.keys(asked).sort()).toEqual(
      endpoints.map(({ method, path }) => `${method} ${path}`).sort(),
    );
    for (const [endpoint, requests] of Object.entries(asked)) {
      for (const request of requests) {
        const { status, body } = await b(request);
        const text = JSON.stringify(body);
        if (endpoint.includes('/namespaces')) expect(status, request.path).toBe(403);
        // What B sent itself may come back in an error.
        if (status < 400) expect(text, request.path).not.toContain(ids.file);
        expect(text, request.path).not.toContain(MARK);
        expect(text, request.path).not.toMatch(/handbook|"Secret plan"|a-key|main-key/i);
        expect(text, request.path).not.toContain(turn.id);
      }
    }
    // Nor has B changed anything.
    expect(await everything(a)).toEqual(before);
  });

  test('B with the session and the idempotency key of A stores its own turn', async () => {
    const { backend, a, b, turn } = await twoNamespaces();
    await using _ = backend;
    const own = await b({ method: 'POST', path: 'chat', body: { ...TURN, content: 'of b' } });
    expect(own.status).toBe(201);
    expect(own.body).toMatchObject({ deduplicated: false, seq: 1 });
    expect(own.body.id).not.toBe(turn.id);
    const { turns } = (await a({ method: 'GET', path: 'sessions/chat-of-a/turns' })).body;
    expect(turns.map(({ content }: Json) => content)).toEqual([TURN.content]);
  });

  test('statistics and scores in B do not change when A and `default` write', async () => {
    const { backend, a, b } = await twoNamespaces();
    await using _ = backend;
    await b({
      method: 'POST',
      path: 'ingest/docs',
      body: { title: 'Of b', content: `A ${MARK} of b swims.` },
    });
    const state = async () => {
      const found = (await b(attempts({ file: 'x', chunk: 'x', entity: 'x', token: 'x' })['POST /search'][0]))
        .body;
      const stats = (await b({ method: 'GET', path: 'stats' })).body;
      return { ...found, tookMs: 0, stats: { ...stats, sync: 0 } };
    };
    // What B itself has written may still be embedded.
    await until(async () => (await state()).stats.embedding.state === 'idle');
    const before = await state();
    expect(before.results.length).toBeGreaterThan(0);
    for (let n = 0; n < 20; n++) {
      const body = { title: `More ${n}`, content: `A ${MARK} of a swims.` };
      await a({ method: 'POST', path: 'ingest/docs', body });
      await backend.post('ingest/docs', body, bearer('main-key'));
    }
    await until(async () => (await state()).stats.embedding.state === 'idle');
    expect(await state()).toEqual(before);
  });

  test('a sync in B does not read the docs folder, which belongs to `default`', async () => {
    const { backend, b } = await twoNamespaces();
    await using _ = backend;
    const { sync } = (await b({ method: 'POST', path: 'ingest/docs' })).body;
    expect(sync).toMatchObject({ state: 'done', total: 0, errors: [] });
    expect((await b({ method: 'GET', path: 'stats' })).body).toMatchObject({ documents: 0, ready: true });
  });
});

describe('all namespaces', () => {
  const MAIN = bearer('main-key');
  const store = (backend: TestBackend, namespace: string, content = 'x') =>
    backend.post('chat', { sessionId: 's', role: 'user', content }, { ...MAIN, [NAMESPACE]: namespace });

  test('namespaces are listed with sizes, only by the main key', async () => {
    await using backend = await memoryBackend({
      key: 'main-key',
      namespaceKeys: await keysOf('alice: alice-key'),
    });
    await store(backend, 'alice');
    const { body } = await backend.get('namespaces?limit=1', MAIN);
    expect(body).toEqual({ namespaces: [{ name: 'alice', bytes: expect.any(Number) }], nextCursor: 'alice' });
    expect((await backend.get('namespaces?cursor=alice', MAIN)).body).toMatchObject({
      namespaces: [{ name: 'default' }],
      nextCursor: null,
    });
    expect((await backend.get('namespaces', bearer('alice-key'))).status).toBe(403);
    expect((await backend.get('namespaces')).status).toBe(401);
  });

  test('a deleted namespace is gone, while calls to it are in progress', async () => {
    await using backend = await memoryBackend({ key: 'main-key', indexesChat: true });
    await store(backend, 'alice', 'before');
    const writes = Array.from({ length: 50 }, (_, n) => store(backend, 'alice', `during ${n}`));
    const deletion = call(backend, 'DELETE', 'namespaces/alice', MAIN);
    const statuses = (await Promise.all(writes)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([201]));
    const { status, text } = await deletion;
    expect([status, JSON.parse(text)]).toEqual([200, { name: 'alice', deleted: true }]);
    const { turns } = (await backend.get('sessions/s/turns', { ...MAIN, [NAMESPACE]: 'alice' })).body;
    expect((turns ?? []).map(({ content }: Json) => content)).not.toContain('before');
    await call(backend, 'DELETE', 'namespaces/alice', MAIN);
    expect((await call(backend, 'DELETE', 'namespaces/alice', MAIN)).status).toBe(404);
  });

  test.each([
    ['default', 400, 'cannot be deleted'],
    ['nobody', 404, 'no such namespace'],
    ['..%2f..', 404, 'no such namespace'],
    ['a%20b', 400, '`name`: expected 1 to 80'],
  ])('DELETE of namespace %s is answered with %i', async (name, status, message) => {
    await using backend = await memoryBackend({ key: 'main-key' });
    const reply = await call(backend, 'DELETE', `namespaces/${name}`, MAIN);
    expect(reply.status).toBe(status);
    expect(JSON.parse(reply.text).error.message).toContain(message);
    expect((await backend.get('stats', MAIN)).status).toBe(200);
  });

  test('the backup of a namespace is a database with its data only', async () => {
    await using backend = await memoryBackend({ key: 'main-key' });
    await store(backend, 'alice', 'of alice');
    await store(backend, 'bob', 'of bob');
    const response = await fetch(`${backend.url}/api/memory/namespaces/alice/backup`, { headers: MAIN });
    expect(response.headers.get('content-type')).toBe('application/octet-stream');
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'alice.db');
    writeFileSync(path, Buffer.from(await response.arrayBuffer()));
    const database = new DatabaseSync(path);
    expect(database.prepare('SELECT content FROM memory_chat_history').all()).toEqual([
      { content: 'of alice' },
    ]);
    database.close();
    expect((await backend.get('namespaces/nobody/backup', MAIN)).status).toBe(404);
  });
});
