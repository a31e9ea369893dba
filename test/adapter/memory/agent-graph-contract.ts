import { expect, test } from 'vitest';
import type { AgentGraph, GraphChange, Store } from '../../../src/adapter/memory/store.ts';
import { documentOf, EMBEDDER, entity } from './records.ts';

/** What a store promises of the entities that agents write. Every name begins with `prefix`. */
export function agentGraphContract(store: () => Store): void {
  const person = (name: string, ...observations: string[]) => ({ name, entityType: 'person', observations });
  const relation = (from: string, relationType: string, to: string) => ({ from, to, relationType });
  const open = async (...names: string[]): Promise<AgentGraph> => store().agentGraph({ names });

  test('entities are created once, and observations and relations are added once', async () => {
    const change: GraphChange = {
      createEntities: [person('Ada', 'writes programs'), person('Ada', 'ignored'), person('Bob')],
      createRelations: [relation('Ada', 'knows', 'Bob'), relation('Ada', 'knows', 'Bob')],
      addObservations: [{ entityName: 'Bob', contents: ['sails', 'sails'] }],
    };
    const first = await store().changeGraph(change);
    expect(first).toMatchObject({
      entities: [person('Ada', 'writes programs'), person('Bob')],
      relations: [relation('Ada', 'knows', 'Bob')],
      observations: [{ entityName: 'Bob', addedObservations: ['sails'] }],
    });
    expect(await store().changeGraph(change)).toMatchObject({
      entities: [],
      relations: [],
      observations: [{ entityName: 'Bob', addedObservations: [] }],
    });
    expect(await open('Ada', 'Bob', 'nobody')).toEqual({
      entities: [person('Ada', 'writes programs'), person('Bob', 'sails')],
      relations: [relation('Ada', 'knows', 'Bob')],
      isCut: false,
      nextCursor: null,
    });
  });

  test('an observation of an unknown entity changes nothing', async () => {
    const change = {
      createEntities: [person('Undone')],
      addObservations: [{ entityName: 'Nobody at all', contents: ['x'] }],
    };
    await expect(store().changeGraph(change)).rejects.toMatchObject({
      code: 'memory_not_found',
      message: 'Entity with name Nobody at all not found',
    });
    expect((await open('Undone')).entities).toEqual([]);
  });

  test('an end of a relation need not be an entity, and is none until it is created', async () => {
    await store().changeGraph({
      createEntities: [person('Carla')],
      createRelations: [relation('Carla', 'works_at', 'Acme'), relation('Acme', 'is_in', 'Berlin')],
    });
    expect(await open('Acme', 'Berlin')).toMatchObject({ entities: [], relations: [] });
    expect((await open('Carla')).relations).toEqual([relation('Carla', 'works_at', 'Acme')]);
    expect((await store().agentGraph({})).relations).toContainEqual(relation('Acme', 'is_in', 'Berlin'));
    const { entities } = await store().changeGraph({ createEntities: [person('Acme')] });
    expect(entities).toHaveLength(1);
    expect((await open('Acme')).relations).toEqual([
      relation('Acme', 'is_in', 'Berlin'),
      relation('Carla', 'works_at', 'Acme'),
    ]);
    const { deleted } = await store().changeGraph({ deleteEntities: ['Acme', 'Nobody'] });
    expect(deleted).toEqual({ entities: 1, observations: 0, relations: 2 });
    // Berlin was only known as the end of a relation.
    expect(await store().byName('Berlin', 5)).toEqual([]);
    expect((await open('Carla')).relations).toEqual([]);
  });

  test('deleting what does not exist is silent', async () => {
    await store().changeGraph({
      createEntities: [person('Dora', 'one', 'two')],
      createRelations: [relation('Dora', 'likes', 'tea')],
    });
    const { deleted } = await store().changeGraph({
      deleteObservations: [
        { entityName: 'Dora', observations: ['one', 'absent'] },
        { entityName: 'Nobody', observations: ['x'] },
      ],
      deleteRelations: [relation('Dora', 'likes', 'tea'), relation('Dora', 'likes', 'coffee')],
    });
    expect(deleted).toEqual({ entities: 0, observations: 1, relations: 1 });
    expect((await open('Dora')).entities).toEqual([person('Dora', 'two')]);
    expect(await store().byName('tea', 1)).toEqual([]);
  });

  test('entities are found by a part of name, type or observation in any case, literally', async () => {
    await store().changeGraph({
      createEntities: [
        { name: 'Élan', entityType: 'Motor Boat', observations: ['100% electric', 'built_in 2019'] },
        { name: 'Elan 2', entityType: 'car', observations: ['1000 electric'] },
      ],
    });
    const names = async (query: string): Promise<string[]> =>
      (await store().agentGraph({ query })).entities.map(({ name }) => name);
    expect(await names('éLAN')).toEqual(['Élan']);
    expect(await names('motor b')).toEqual(['Élan']);
    expect(await names('0% ELEC')).toEqual(['Élan']);
    expect(await names('t_in')).toEqual(['Élan']);
    expect(await names('electric')).toEqual(['Elan 2', 'Élan']);
    expect(await names('carbuilt')).toEqual([]);
  });

  test('pages of entities are bounded by their length and complete together', async () => {
    const text = 'x'.repeat(9_000);
    const names = Array.from({ length: 12 }, (_, n) => `page ${String(n).padStart(2, '0')}`);
    await store().changeGraph({ createEntities: names.map((name) => person(name, text)) });
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await store().agentGraph({ query: text, cursor });
      expect(JSON.stringify(page).length).toBeLessThan(42_000);
      seen.push(...page.entities.map(({ name }) => name));
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    expect(seen).toEqual(names);
  });

  test('concurrent additions to one entity are all kept', async () => {
    await store().changeGraph({ createEntities: [person('Busy')] });
    const texts = Array.from({ length: 30 }, (_, n) => `fact ${String(n).padStart(2, '0')}`);
    await Promise.all(
      texts.map((text) =>
        store().changeGraph({ addObservations: [{ entityName: 'Busy', contents: [text] }] }),
      ),
    );
    expect([...((await open('Busy')).entities[0]?.observations ?? [])].sort()).toEqual(texts);
  });

  test('an entity whose observations get too long is rejected with a remedy', async () => {
    await store().changeGraph({ createEntities: [person('Full')] });
    const add = (letter: string): Promise<unknown> =>
      store().changeGraph({ addObservations: [{ entityName: 'Full', contents: [letter.repeat(16_000)] }] });
    for (const letter of ['a', 'b', 'c']) await add(letter);
    await expect(add('d')).rejects.toMatchObject({
      code: 'memory_invalid',
      message: expect.stringMatching(/"Full".*64003 characters.*49152.*second entity/),
    });
  });

  test('a name is found in any case and punctuation if no name is equal', async () => {
    await store().changeGraph({ createEntities: [person('Grace_Hopper'), person('grace hopper')] });
    const names = async (name: string): Promise<string[]> =>
      (await store().byName(name, 5)).map((found) => found.name);
    expect(await names('Grace_Hopper')).toEqual(['Grace_Hopper']);
    expect((await names('GRACE HOPPER')).sort()).toEqual(['Grace_Hopper', 'grace hopper']);
    expect(await names('grace')).toEqual([]);
    expect(await names('…')).toEqual([]);
  });

  test('texts that mention an entity refer to it, whichever of them is stored first', async () => {
    const texts = ['We met Zoë Quill there.', 'Zoë-Quills are birds.', 'Nobody.'];
    await store().putDocument(documentOf('mentions.md', texts));
    await store().changeGraph({ createEntities: [person('Zoë_Quill')] });
    const [{ id = '' } = {}] = await store().byName('Zoë_Quill', 1);
    const from = async (): Promise<string[]> =>
      (await store().edges([id], 'in', 50)).map(({ fromId }) => fromId);
    expect(await from()).toEqual([`chunk:mentions.md:0:${texts[0]}`]);
    await store().putDocument(documentOf('mentions.md', ['nothing', 'zoe quill again']));
    await store().putEntities(
      [entity({ id: 'said', type: 'chat_message', content: 'Ask ZOË QUILL!' })],
      [],
      EMBEDDER,
    );
    expect((await from()).sort()).toEqual(['chunk:mentions.md:1:zoe quill again', 'said']);
    await store().changeGraph({ deleteEntities: ['Zoë_Quill'] });
    expect(await from()).toEqual([]);
  });
}
