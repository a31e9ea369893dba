import { expect, test } from 'vitest';
import { indexedTurn } from '../../../src/adapter/memory/chat-index.ts';
import { agentEntityId, chatMessageId } from '../../../src/adapter/memory/ids.ts';
import { withLifetimes } from '../../../src/adapter/memory/lifetimes.ts';
import type { Cutoffs, Store, TurnSearch } from '../../../src/adapter/memory/store.ts';
import { documentOf, EMBEDDER, entity, turn, vector } from './records.ts';

/** What a store promises of finding turns again and of deleting. */
export function erasureContract(store: () => Store): void {
  const search = async (request: Partial<TurnSearch>): Promise<string[]> =>
    (await store().searchTurns({ order: 'oldest', limit: 50, ...request })).turns.map(
      ({ content }) => content,
    );

  test('turns are found by words in any form, by session, agent and time, in both orders', async () => {
    const texts = ['We deployed the Gateway.', 'Déploy später', 'nothing', 'deploying gateways again'];
    const stored = [];
    for (const text of texts) stored.push((await store().appendTurn(turn('find', text))).turn);
    await store().appendTurn({ ...turn('find too', 'deploy the gateway'), agentId: 'finder' });
    expect(await search({ query: 'deploy gateway', sessionId: 'find' })).toEqual([texts[0], texts[3]]);
    expect(await search({ query: 'deploy', sessionId: 'find', order: 'newest' })).toEqual([
      texts[3],
      texts[1],
      texts[0],
    ]);
    expect(await search({ agentId: 'finder' })).toEqual(['deploy the gateway']);
    expect(await search({ sessionId: 'find', query: '…' })).toEqual([]);
    expect(await search({ sessionId: 'find', query: '" OR * NEAR( -' })).toEqual([]);
    const [first] = stored;
    expect(await search({ sessionId: 'find', from: first?.createdAt })).toEqual(texts);
    expect(await search({ sessionId: 'find', to: first?.createdAt })).toEqual([]);
    const page = await store().searchTurns({ sessionId: 'find', order: 'oldest', limit: 3 });
    expect(page.turns).toEqual(stored.slice(0, 3));
    expect(await search({ sessionId: 'find', cursor: page.nextCursor ?? undefined })).toEqual([texts[3]]);
  });

  test('a page of turns is bounded by its length', async () => {
    for (const letter of 'abc') await store().appendTurn(turn('long turns', letter.repeat(30_000)));
    const { turns, nextCursor } = await store().searchTurns({
      sessionId: 'long turns',
      order: 'oldest',
      limit: 9,
    });
    expect(turns).toHaveLength(1);
    expect(nextCursor).toBe(turns[0]?.seq);
  });

  test('a deleted session leaves no turn, agent, word or indexed message', async () => {
    const { turn: stored } = await store().appendTurn({
      ...turn('gone', 'a pangolin'),
      agentId: 'pangolin-bot',
    });
    await store().putEntities(
      [
        entity({
          id: chatMessageId(stored.id),
          type: 'chat_message',
          searchText: 'a pangolin',
          embedding: vector(77),
        }),
      ],
      [],
      EMBEDDER,
    );
    const preview = await store().erase({ sessions: ['gone'] }, { preview: true });
    expect(preview).toMatchObject({
      deleted: false,
      counts: { turns: 1, entities: 0, documents: 0 },
      turns: [{ sessionId: 'gone', excerpt: 'a pangolin' }],
    });
    expect(await store().turns('gone', { after: 0, limit: 9 })).toBeDefined();
    const done = await store().erase({ sessions: ['gone'] }, { token: preview.token });
    expect(done).toMatchObject({ deleted: true, counts: preview.counts });
    expect(await store().turns('gone', { after: 0, limit: 9 })).toBeUndefined();
    expect(await search({ query: 'pangolin' })).toEqual([]);
    expect(await store().lexical(['pangolin'], { limit: 5 })).toEqual([]);
    expect(await store().entities([chatMessageId(stored.id)])).toEqual([]);
    const { sessions } = await store().sessions({ limit: 5000 });
    expect(JSON.stringify(sessions)).not.toContain('gone');
    // The session may begin again.
    await store().appendTurn(turn('gone', 'anew'));
    expect((await store().sessions({ limit: 1 })).sessions).toEqual([
      expect.objectContaining({ sessionId: 'gone', turns: 1, agentIds: ['agent'] }),
    ]);
  });

  test('everything about a name is shown first, and nothing else is deleted', async () => {
    await store().changeGraph({
      createEntities: [
        { name: 'Ottilie', entityType: 'person', observations: ['plays chess'] },
        { name: 'Club', entityType: 'group', observations: ['Led by OTTILIE.', 'meets on Mondays'] },
        { name: 'Ottilien', entityType: 'place', observations: ['a village'] },
      ],
      createRelations: [
        { from: 'Ottilie', to: 'Club', relationType: 'leads' },
        { from: 'Club', to: 'Town', relationType: 'is_in' },
      ],
    });
    await store().appendTurn(turn('chess', 'Ottilie has won again'));
    await store().appendTurn(turn('chess', 'who is next?'));
    await store().appendTurn(turn('chat-with-ottilie', 'hello'));
    await store().putDocument(documentOf('chess.md', ['An interview with Ottilie.', 'Openings']));
    await store().putDocument(documentOf('village.md', ['Ottilien is a village']));
    const about = { about: 'ottilie' };
    const preview = await store().erase(about, { preview: true });
    expect(preview).toMatchObject({
      counts: { entities: 1, observations: 1, relations: 2, turns: 2, documents: 1 },
      entities: ['Ottilie'],
      observations: [{ entityName: 'Club', observation: 'Led by OTTILIE.' }],
      documents: [{ key: 'chess.md', origin: 'docs_dir' }],
      truncated: false,
      note: expect.stringContaining('chess.md: stored again by the next sync'),
    });
    // What was added after the preview was not shown.
    const { turn: late } = await store().appendTurn(turn('later', 'Ottilie called'));
    await expect(store().erase(about, { token: preview.token })).rejects.toMatchObject({
      code: 'memory_changed',
      status: 409,
    });
    expect(await search({ query: 'ottilie' })).toContain('Ottilie has won again');
    const { token } = await store().erase(about, { preview: true });
    expect(token).not.toBe(preview.token);
    expect(await store().erase(about, { token })).toMatchObject({ deleted: true, counts: { turns: 3 } });
    expect(await search({ query: 'ottilie' })).toEqual([]);
    expect(await store().turns(late.sessionId, { after: 0, limit: 5 })).toBeUndefined();
    expect(await search({ sessionId: 'chess' })).toEqual(['who is next?']);
    expect(await store().agentGraph({ names: ['Ottilie', 'Club', 'Ottilien'] })).toMatchObject({
      entities: [{ name: 'Club', observations: ['meets on Mondays'] }, { name: 'Ottilien' }],
      relations: [{ from: 'Club', to: 'Town' }],
    });
    expect(await store().document('docs_dir', 'chess.md')).toBeUndefined();
    expect(await store().document('docs_dir', 'village.md')).toBeDefined();
    expect(await store().erase(about, { preview: true })).toMatchObject({
      counts: { entities: 0, observations: 0, relations: 0, turns: 0, documents: 0 },
    });
    await expect(store().erase({ about: '…' }, { preview: true })).rejects.toMatchObject({
      code: 'memory_invalid',
    });
  });

  test('what has expired is not returned before it is deleted, and its name is free', async () => {
    const old = '2020-01-01T00:00:00.000Z';
    const turns = [
      { id: 'old turn', createdAt: old },
      { id: 'new turn', createdAt: new Date().toISOString() },
    ].map((one) => ({
      ...one,
      sessionId: `session of ${one.id}`,
      agentId: 'a',
      role: 'user' as const,
      content: 'a quetzal',
    }));
    const aged = { name: 'Aged', entityType: 'person', observations: ['a quetzal'] };
    await store().importBatch({ entities: [aged], relations: [], turns, documents: [] });
    await store().changeGraph({ createRelations: [{ from: 'Aged', to: 'Older', relationType: 'knows' }] });
    const file = documentOf('aged.md', ['a quetzal'], { origin: 'ingest' });
    await store().putDocument({ ...file, entities: file.entities.map((one) => ({ ...one, storedAt: old })) });
    const living = withLifetimes(store(), { turns: 3_600_000, entities: 3_600_000 });
    const ids = ['file:aged.md', agentEntityId('Aged')];
    expect(await store().entities(ids)).toHaveLength(2);
    expect((await living.entities(ids)).map(({ name }) => name)).toEqual(['Aged']);
    const namesOf = (found: readonly { name: string }[]) => found.map(({ name }) => name);
    const passage = file.entities.find(({ type }) => type === 'doc_chunk')?.name as string;
    expect(namesOf(await store().lexical(['quetzal'], { limit: 50 }))).toContain(passage);
    expect(namesOf(await living.lexical(['quetzal'], { limit: 50 }))).toEqual(['Aged']);
    const near = [vector(1), EMBEDDER, { limit: 5_000 }] as const;
    expect(namesOf(await store().nearest(...near))).toContain(passage);
    expect(namesOf(await living.nearest(...near))).not.toContain(passage);
    expect(await living.turns('session of old turn', { after: 0, limit: 5 })).toBeUndefined();
    expect((await living.searchTurns({ query: 'quetzal', order: 'oldest', limit: 5 })).turns).toMatchObject([
      { id: 'new turn' },
    ]);
    const { sessions } = await living.sessions({ limit: 5000 });
    expect(sessions.map(({ sessionId }) => sessionId)).not.toContain('session of old turn');
    expect(await living.byName('aged.md', 5)).toEqual([]);

    // As if an hour had passed for the entity.
    const late: Cutoffs = { turns: '', entities: new Date(Date.now() + 60_000).toISOString() };
    expect(await store().agentGraph({ names: ['Aged'], expired: late })).toMatchObject({
      entities: [],
      relations: [],
    });
    expect(await store().byName('Aged', 5, late)).toEqual([]);
    expect(await store().similarNames('Agedd', 5)).toContain('Aged');
    expect(await store().similarNames('Agedd', 5, late)).not.toContain('Aged');
    expect(
      (await store().topology({ types: ['entity'], limit: 5000, expired: late })).nodes,
    ).not.toContainEqual(expect.objectContaining({ name: 'Aged' }));
    expect((await store().agentRelations({ limit: 5000, expired: late })).relations).not.toContainEqual(
      expect.objectContaining({ from: 'Aged' }),
    );
    const add = { addObservations: [{ entityName: 'Aged', contents: ['x'] }] };
    await expect(store().changeGraph(add, late)).rejects.toMatchObject({ code: 'memory_not_found' });
    const { entities } = await store().changeGraph(
      { createEntities: [{ ...aged, observations: ['b'] }] },
      late,
    );
    expect(entities).toEqual([{ ...aged, observations: ['b'] }]);
  });

  test('what has expired is deleted in batches, and nothing else', async () => {
    const turns = Array.from({ length: 5 }, (_, n) => ({
      id: `batch ${n}`,
      sessionId: `batch ${n % 2}`,
      agentId: 'a',
      role: 'user' as const,
      content: 'a dugong',
      createdAt: n === 4 ? '2030-01-01T00:00:00.000Z' : `2010-01-0${n + 1}T00:00:00.000Z`,
    }));
    await store().importBatch({ entities: [], relations: [], turns, documents: [] });
    await store().putEntities(
      [
        entity({ id: 'expiring', type: 'entity', name: 'Expiring', storedAt: '2010-01-01T00:00:00.000Z' }),
        entity({ id: chatMessageId('batch 0'), type: 'chat_message', storedAt: '2010-01-01T00:00:00.000Z' }),
      ],
      [],
      EMBEDDER,
    );
    const cutoffs: Cutoffs = { turns: '2011', entities: '2011' };
    // Three turns, a message and an entity.
    expect(await store().expire(cutoffs, 3)).toBe(5);
    expect((await store().searchTurns({ query: 'dugong', order: 'oldest', limit: 9 })).turns).toMatchObject([
      { id: 'batch 3' },
      { id: 'batch 4' },
    ]);
    while ((await store().expire(cutoffs, 3)) > 0);
    expect(await search({ query: 'dugong' })).toHaveLength(1);
    expect(await store().entities([chatMessageId('batch 0')])).toEqual([]);
    expect((await store().turns('batch 0', { after: 0, limit: 9 }))?.turns).toMatchObject([
      { id: 'batch 4' },
    ]);
    expect(await store().turns('batch 1', { after: 0, limit: 9 })).toBeUndefined();
    expect(await store().expire({ turns: '', entities: '' }, 3)).toBe(0);
  });

  test('entities and documents are deleted by name and id', async () => {
    await store().changeGraph({
      createEntities: [{ name: 'Single', entityType: 'thing', observations: ['a narwhal'] }],
    });
    await store().putDocument(documentOf('single.md', ['text about axolotls']));
    await store().erase({ entities: ['Single'], documents: ['file:single.md'] }, {});
    expect(await store().entities([agentEntityId('Single'), 'file:single.md'])).toEqual([]);
    expect(await store().lexical(['narwhal', 'axolotls'], { limit: 5 })).toEqual([]);
  });

  /** Stores a text, such as a chat message, and what a model has extracted from it: by name, observations. */
  const extractedFrom = async (id: string, said: Readonly<Record<string, readonly string[]>>) => {
    const names = Object.keys(said);
    const { row = 0 } = (await rowsOf()).find((one) => one.id === id) ?? {};
    await store().putExtraction({
      row,
      entities: names.map((name) => ({ name, entityType: 'person', observations: said[name] ?? [] })),
      relations: names.map((from) => ({ from, to: `Friend of ${from}`, relationType: 'knows' })),
      outdated: [],
    });
  };
  const rowsOf = () => store().unembedded('none', { after: 0, limit: 5_000 });
  const message = (id: string, storedAt?: string) =>
    entity({ id, type: 'chat_message', content: id, searchText: id, ...(storedAt && { storedAt }) });
  const observed = async (...names: string[]): Promise<Record<string, readonly string[]>> => {
    const { entities } = await store().agentGraph({ names });
    return Object.fromEntries(entities.map(({ name, observations }) => [name, observations]));
  };

  test('what was extracted goes with its last text, and what it says with the text that said it', async () => {
    await store().putEntities(
      ['m1', 'm2'].map((id) => message(id)),
      [],
      EMBEDDER,
    );
    await extractedFrom('m1', { Zoe: ['said in m1'], Yan: ['of m1'], Uwe: ['of m1'] });
    await extractedFrom('m2', { Zoe: ['said in m2'], Xia: ['of m2', 'a zyzzyva'] });
    // Agents change one, relate the end of a relation of another, and give a relation the name of that to a text.
    await store().changeGraph({
      addObservations: [{ entityName: 'Yan', contents: ['by an agent'] }],
      createRelations: [
        { from: 'Friend of Uwe', to: 'Agent', relationType: 'knows' },
        { from: 'Uwe', to: 'Agent', relationType: 'EXTRACTED_FROM' },
      ],
    });
    const [zoe] = await store().byName('Zoe', 1);
    const edges = await store().edges([zoe?.id ?? ''], 'out', 9);
    expect(edges.filter(({ relationType }) => relationType === 'EXTRACTED_FROM')).toMatchObject([
      { toId: 'm1', weight: 1 },
      { toId: 'm2', weight: 0.5 },
    ]);
    // A deletion is no change by an agent.
    await store().erase({ about: 'zyzzyva' }, {});
    await store().removeEntities(['m1']);
    expect(await observed('Zoe', 'Yan', 'Xia', 'Uwe')).toEqual({
      Zoe: [],
      Yan: ['of m1', 'by an agent'],
      Xia: ['of m2'],
    });
    expect((await store().byName('Zoe', 1))[0]?.metadata['origin']).toBe('extracted');
    expect(await store().similarNames('Friend of Uw', 5)).toContain('Friend of Uwe');
    await store().removeEntities(['m2']);
    expect(await observed('Zoe', 'Yan', 'Xia')).toEqual({ Yan: ['of m1', 'by an agent'] });
    expect(await store().byName('Friend of Zoe', 1)).toEqual([]);
    expect(await store().lexical(['said'], { types: ['entity'], limit: 9 })).toEqual([]);
    // Nothing is stored for a text that is gone.
    await extractedFrom('m1', { Zoe: ['too late'] });
    expect(await observed('Zoe')).toEqual({});
    await store().erase({ about: 'Yan' }, {});
  });

  test('what a model has extracted in another memory goes with its text here, and an agent keeps what is its own', async () => {
    await store().putEntities([message('i1'), message('i2')], [], EMBEDDER);
    const person = (name: string, ...observations: string[]) => ({
      name,
      entityType: 'person',
      observations,
    });
    await store().changeGraph({ createEntities: [person('Ines', 'by an agent')] });
    const [turns, isExtracted] = [[{ ...turn('imported', 'a turn'), id: 'it', isIndexed: true }], true];
    const batch = {
      entities: [person('Ivo', 'said in i1'), person('Ines', 'said in i1')].map((one) => ({
        ...one,
        isExtracted,
      })),
      relations: [{ from: 'Ivo', to: 'Ink', relationType: 'has', isExtracted }],
      turns: turns.map((one) => ({ ...one, createdAt: '2026-01-01T00:00:00.000Z' })),
      documents: [],
      readTexts: new Map([
        [
          'i1',
          {
            entities: ['Ines', 'Ink', 'Ivo', 'Nobody'].map((name) => ({ name, created: name !== 'Ink' })),
            outdated: ['it', 'unknown'],
          },
        ],
        ['i2', { entities: [{ name: 'Ivo', created: true }], outdated: [] }],
        ['unknown', { entities: [{ name: 'Ivo', created: true }], outdated: [] }],
      ]),
    };
    expect(await store().importBatch(batch)).toEqual({ stored: 3, unchanged: 1 });
    expect(await store().importBatch(batch)).toEqual({ stored: 0, unchanged: 4 });
    const named = (name: string, created: boolean) => ({ name, created });
    expect(await store().readTexts(['i1', 'i2', chatMessageId('it'), 'unknown'])).toEqual(
      new Map([
        ['i1', { entities: [named('Ink', false), named('Ivo', true)], outdated: ['it'] }],
        // Of two texts that are said to have created an entity, one has.
        ['i2', { entities: [named('Ivo', false)], outdated: [] }],
      ]),
    );
    expect((await store().agentRelations({ limit: 5_000 })).relations).toContainEqual(batch.relations[0]);
    await store().removeEntities(['i1']);
    expect(await observed('Ivo', 'Ines')).toEqual({ Ivo: [], Ines: ['by an agent'] });
    expect(await store().edges([chatMessageId('it')], 'in', 9)).toEqual([]);
    await store().removeEntities(['i2']);
    expect(await observed('Ivo', 'Ines')).toEqual({ Ines: ['by an agent'] });
    expect(await store().byName('Ink', 1)).toEqual([]);
    await store().erase({ entities: ['Ines'], sessions: ['imported'] }, {});
  });

  test('a turn that is indexed after it was deleted is not stored', async () => {
    const { turn: kept } = await store().appendTurn(turn('late kept', 'a kept takahe'));
    const { turn: gone } = await store().appendTurn(turn('late', 'a late takahe'));
    await store().erase({ sessions: ['late'] }, {});
    for (const one of [kept, gone]) {
      const { session, message: said, belongs } = indexedTurn(one, vector(78));
      await store().putEntities([session, said], [belongs], EMBEDDER, one.id);
    }
    expect((await store().lexical(['takahe'], { limit: 9 })).map(({ id }) => id)).toEqual([
      chatMessageId(kept.id),
    ]);
    expect((await store().byName('late', 1)).map(({ type }) => type)).toEqual([]);
    await store().erase({ sessions: ['late kept'] }, {});
  });

  test('what was extracted from what has expired is not returned before it is deleted', async () => {
    const old = '2010-01-01T00:00:00.000Z';
    await store().putEntities([message('e1', old), message('e2')], [], EMBEDDER);
    // Only from the old text; created by it and named by the other; named by it and created by the other; and an agent's.
    await extractedFrom('e1', { Expa: ['a bilby'], Expb: ['a bilby'] });
    await extractedFrom('e2', { Expb: ['a bilby'], Expc: ['a bilby'] });
    await extractedFrom('e1', { Expc: [], Expd: ['a bilby'] });
    await store().changeGraph({ addObservations: [{ entityName: 'Expd', contents: ['a wombat'] }] });
    const living = withLifetimes(store(), { turns: 3_600_000 });
    const all = ['Expa', 'Expb', 'Expc', 'Expd'];
    const seen = async (where: Store) => {
      const ids = [...all, 'Friend of Expa'].map(agentEntityId);
      const ours = (found: readonly { name: string }[]): string[] =>
        found.flatMap(({ name }) => (/^Exp|^Friend of Exp/.test(name) ? [name] : [])).sort();
      return {
        entities: ours(await where.entities(ids)),
        lexical: ours(await where.lexical(['bilby'], { types: ['entity'], limit: 50 })),
        byName: ours((await Promise.all(all.map((name) => where.byName(name, 1)))).flat()),
        graph: ours((await where.agentGraph({ names: all })).entities),
        topology: ours((await where.topology({ types: ['entity'], limit: 5_000 })).nodes),
        listed: ours((await where.searchEntities({ query: 'Exp', types: ['entity'], limit: 500 })).entities),
      };
    };
    const shown = await seen(living);
    expect((await seen(store())).entities).toEqual([...all, 'Friend of Expa']);
    const friends = ['Friend of Expb', 'Friend of Expc'];
    expect(shown).toEqual({
      entities: ['Expc', 'Expd'],
      lexical: ['Expc', 'Expd'],
      byName: ['Expc', 'Expd'],
      graph: ['Expc', 'Expd'],
      topology: ['Expc', 'Expd', ...friends],
      listed: ['Expc', 'Expd', ...friends],
    });
    await store().expire({ turns: '2011', entities: '' }, 50);
    expect((await seen(living)).graph).toEqual(['Expb', 'Expc', 'Expd']);
    expect(await observed('Expb', 'Expc')).toEqual({ Expb: [], Expc: ['a bilby'] });
    await store().removeEntities(['e2']);
    await store().erase({ entities: ['Expd', 'Friend of Expd'] }, {});
  });

  test('what was extracted from a document goes with its passage, wherever that has moved, and shows in a preview', async () => {
    const put = (...texts: readonly string[]) => {
      const { relations: _, entities, ...document } = documentOf('moving.md', texts);
      const placed = entities.map((one, at) => ({ ...one, id: at === 0 ? one.id : `moving ${at}` }));
      return store().putDocument({ ...document, entities: placed, relations: [] });
    };
    await put('first passage', 'second passage', 'third passage');
    await extractedFrom('moving 1', { First: ['one'] });
    await extractedFrom('moving 2', { Second: ['two'] });
    await extractedFrom('moving 3', { Third: ['three'], First: [] });
    await put('third passage', 'new passage', 'second passage');
    expect(await observed('First', 'Second', 'Third')).toEqual({
      First: [],
      Second: ['two'],
      Third: ['three'],
    });
    await put('second passage');
    expect(await observed('First', 'Second', 'Third')).toEqual({ Second: ['two'] });
    await store().putEntities([message('m4')], [], EMBEDDER);
    await extractedFrom('m4', { Second: ['again'] });
    const request = { documents: ['file:moving.md'] };
    const preview = await store().erase(request, { preview: true });
    expect(preview).toMatchObject({
      counts: { entities: 0, observations: 1, documents: 1 },
      observations: [{ entityName: 'Second', observation: 'two' }],
    });
    expect(await store().erase(request, { token: preview.token })).toMatchObject({ counts: preview.counts });
    expect(await observed('Second')).toEqual({ Second: [] });
    await store().putEntities([message('m4', '2010-01-01T00:00:00.000Z')], [], EMBEDDER);
    await store().expire({ turns: '2011', entities: '' }, 9);
    expect(await observed('Second')).toEqual({});
  });
}
