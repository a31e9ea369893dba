import { expect, test } from 'vitest';
import { nameModelOfBatch } from '../../../../src/server/llm/formats/gemini-embeddings/index.ts';
import type { CallBody } from '../../../../src/server/llm/request/call-body.ts';
import { isModelParameter, namedModels } from '../../../../src/server/llm/request/named-models.ts';

// Every shape check of the reader, which requests over the wire would take minutes to reach.

test.each<[body: Record<string, unknown>, names: string[]]>([
  [{ model: 'a' }, []],
  [{ engine: 'a', deployment_id: 'b', deploymentid: 'c' }, ['a', 'b', 'c']],
  [{ engine: 1, deployment: { x: 'a' }, tool: { engine: 'a' } }, []],
  [{ preset: 'a' }, ['*']],
  [{ preset: 1, route: null }, []],
  [{ route: 'a', models: 'b' }, ['*', 'b']],
  [{ route: 'a', models: ['b'] }, ['b']],
  [{ input: [{ model: 'a' }] }, []],
  [{ input: { model: 'a' } }, ['a']],
  [{ other: [{ model: 'a' }, null, 1, [{ model: 'b' }]] }, ['a', 'b']],
  [{ models: null, fallbacks: 1, fallback: true, fallback_model: '', model_id: [null, 1, ''] }, []],
  [{ models: ['models/a', { id: 'b' }, { NAME: 'c' }, [{ name: 'd' }]] }, ['a', 'b', 'c', 'd']],
  [{ models: { id: { name: 'a' }, label: 'b', more: { text: 'c' } } }, ['a']],
  [{ fallbacks: [{ a: ['b'], c: 'd' }] }, ['a', 'b']],
  [{ fallbacks: { models: ['a'], content: ['b'], schema: [{ model: 'c' }] } }, ['a']],
  [{ messages: [{ model: 'a' }], tools: [{ parameters: { model: 'a' } }] }, []],
])('models that %j names are %j', (body, names) => {
  expect(namedModels(body).map(({ name }) => name)).toEqual(names);
});

test('requests of a batch of embeddings name no other model', () => {
  const requests = { requests: [{ model: 'a' }] };
  expect(namedModels(requests).map(({ member }) => member)).toEqual(['model']);
  expect(namedModels(requests, 'batchEmbedContents')).toEqual([]);
});

test('parameters name models as members do', () => {
  expect(['model', 'Models', 'deployment', 'q'].map(isModelParameter)).toEqual([true, true, true, false]);
});

/** The requests of a batch after the model of the call was written into them; undefined if nothing was. */
function named(requests: unknown, name = 'm'): unknown {
  let written: unknown;
  const body: Pick<CallBody, 'get' | 'set'> = {
    get: () => requests,
    set: (_field, value) => {
      written = value;
    },
  };
  nameModelOfBatch(body, name);
  return written;
}

test('requests of a batch that name a model name that of the call', () => {
  for (const requests of [undefined, null, 'x', {}, [], [null], ['x'], [{}], [{ model: null }]])
    expect([requests, named(requests)]).toEqual([requests, undefined]);
  expect([named([{ model: 'models/m' }]), named([{ model: 'models/m' }], 'models/m')]).toEqual([
    undefined,
    undefined,
  ]);
  expect(named([{ model: 'x', content: 1 }, { content: 2 }, null, { model: 5 }])).toEqual([
    { model: 'models/m', content: 1 },
    { content: 2 },
    null,
    { model: 'models/m' },
  ]);
});
