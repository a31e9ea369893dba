import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { embedderFrom } from '../../../../src/adapter/memory/embed/from-environment.ts';
import { createOnnxEmbedder } from '../../../../src/adapter/memory/embed/onnx/onnx-embedder.ts';
import { temporaryFolder } from '../../../kit/folder.ts';
import { tinyModel } from '../../../kit/tiny-model.ts';

/** Zebra and horse mean almost the same here; the last number makes every vector different. */
const WORDS = {
  zebra: [1, 0, 0, 0.1, 0],
  horse: [0.9, 0.1, 0, 0.2, 0],
  tax: [0, 1, 0, 0, 0.3],
  law: [0, 0.9, 0.2, 0, 0],
};
const POOLING = (mode: string) => ({ '1_Pooling/config.json': { [`pooling_mode_${mode}`]: true } });

async function withModel<T>(
  files: Readonly<Record<string, unknown>>,
  use: (folder: string) => Promise<T>,
): Promise<T> {
  await using folder = await temporaryFolder();
  return await use(await tinyModel(join(folder.path, 'animals'), WORDS, files));
}

/** The vectors of some texts, with one digit after the point. */
async function vectorsOf(
  files: Readonly<Record<string, unknown>>,
  texts: readonly string[],
): Promise<number[][]> {
  return withModel(files, async (folder) => {
    const embedder = await createOnnxEmbedder(folder, undefined);
    const vectors = await embedder.embed(texts);
    await embedder.close();
    return vectors.map((vector) => [...vector].map((value) => Math.round(value * 10) / 10));
  });
}

describe('the ONNX embedder', () => {
  test('the ONNX embedder returns unit vectors of the model in the order of the texts', async () => {
    await withModel({}, async (folder) => {
      const embedder = await embedderFrom({}, `onnx:${folder}`);
      expect(embedder.id).toMatch(/^onnx\/animals-[0-9a-f]{12}\/5$/);
      const texts = ['a zebra', '', 'tax law tax', ...Array(40).fill('horse')];
      const seen: number[] = [];
      const vectors = await embedder.embed(texts, undefined, (done) => seen.push(done));
      expect(vectors).toHaveLength(43);
      for (const [index, vector] of vectors.entries())
        expect(Math.hypot(...vector)).toBeCloseTo(index === 1 ? 0 : 1, 5);
      expect(vectors[0]?.[0]).toBeGreaterThan(0.9);
      expect(vectors[2]?.[1]).toBeGreaterThan(0.9);
      expect(vectors[42]).toEqual(vectors[3]);
      expect(seen.at(-1)).toBe(43);
      // A text has the same vector alone and beside longer ones.
      const [alone] = await embedder.embed(['a zebra']);
      expect(alone).toEqual(vectors[0]);
      expect(await embedder.embedQuery('a zebra')).toEqual(vectors[0]);
      await embedder.close();
    });
  });

  test.each([
    ['mean_tokens', [0.7, 0.7, 0, 0.1, 0.2]],
    ['cls_token', [1, 0, 0, 0.1, 0]],
    ['lasttoken', [0, 1, 0, 0, 0.3]],
    ['max_tokens', [0.7, 0.7, 0, 0.1, 0.2]],
  ])('the ONNX embedder uses the pooling %s of the model', async (mode, expected) => {
    expect(await vectorsOf(POOLING(mode), ['zebra tax'])).toEqual([expected]);
  });

  test('the ONNX embedder cuts texts at the length of the model and keeps their last token', async () => {
    const limit = { 'sentence_bert_config.json': { max_seq_length: 2 } };
    const [cut, short] = await vectorsOf(limit, ['zebra zebra zebra zebra tax', 'zebra tax']);
    expect(cut).toEqual(short);
  });

  test('the ONNX embedder puts the prompts of the model in front of queries and documents', async () => {
    const prompts = { 'config_sentence_transformers.json': { prompts: { query: 'tax ', document: 'law ' } } };
    await withModel(prompts, async (folder) => {
      const embedder = await createOnnxEmbedder(folder, undefined);
      const [document] = await embedder.embed(['zebra']);
      const query = await embedder.embedQuery('zebra');
      expect(document?.[2]).toBeGreaterThan(0);
      expect([query[2], query[4]]).toEqual([0, expect.any(Number)]);
      await embedder.close();
    });
  });

  test('another model file gives another id', async () => {
    await using folder = await temporaryFolder();
    const ids: string[] = [];
    for (const size of [5, 3]) {
      const words = Object.fromEntries(
        Object.entries(WORDS).map(([word, row]) => [word, row.slice(0, size)]),
      );
      await tinyModel(join(folder.path, 'same name'), words);
      const embedder = await createOnnxEmbedder(join(folder.path, 'same name'), undefined);
      ids.push(embedder.id);
      await embedder.close();
    }
    expect(new Set(ids.map((id) => id.replace(/\/\d+$/, ''))).size).toBe(2);
  });

  test('queries are computed before documents that wait', async () => {
    await withModel({}, async (folder) => {
      const embedder = await createOnnxEmbedder(folder, undefined);
      const order: string[] = [];
      const documents = Array.from({ length: 5 }, (_, index) =>
        embedder.embed(['tax']).then(() => order.push(`document ${index}`)),
      );
      await Promise.all([...documents, embedder.embedQuery('zebra').then(() => order.push('query'))]);
      expect(order.indexOf('query')).toBeLessThanOrEqual(1);
      await embedder.close();
    });
  });

  test('a closed ONNX embedder rejects texts that wait', async () => {
    await withModel({}, async (folder) => {
      const embedder = await createOnnxEmbedder(folder, undefined);
      const [waiting] = await Promise.allSettled([embedder.embed(['tax']), embedder.close()]);
      expect(waiting).toMatchObject({ status: 'rejected', reason: { code: 'memory_unavailable' } });
      await expect(embedder.embedQuery('tax')).rejects.toMatchObject({ code: 'memory_unavailable' });
    });
  });

  test.each([
    [{ 'onnx/model.onnx': undefined }, /has neither model\.onnx nor onnx\/model\.onnx: export the model/],
    [{ 'tokenizer.json': undefined }, /has no tokenizer\.json: copy it from the model/],
    [{ 'tokenizer.json': '{' }, /tokenizer\.json is not valid JSON/],
    [{ 'tokenizer.json': { model: { type: 'Odd' } } }, /tokenizer\.json is not supported/],
    [{ 'onnx/model.onnx': 'nonsense' }, /model\.onnx cannot be loaded/],
    [
      { 'modules.json': [{ type: 'sentence_transformers.models.Dense', path: '2_Dense' }] },
      /modules\.json has a module Dense: only Transformer, Pooling and Normalize are supported/,
    ],
    [
      { '1_Pooling/config.json': { pooling_mode_mean_tokens: true, pooling_mode_cls_token: true } },
      /the pooling pooling_mode_mean_tokens \+ pooling_mode_cls_token is not supported/,
    ],
  ])('a folder with %j is rejected with what is wrong', async (files, message) => {
    await withModel(files, async (folder) => {
      await expect(createOnnxEmbedder(folder, undefined)).rejects.toMatchObject({
        code: 'bad_request',
        message: expect.stringMatching(message),
      });
    });
  });

  // Models on Hugging Face have files of other tools beside them, in other formats of the same names.
  test.each([
    ['modules.json', null],
    ['modules.json', {}],
    ['modules.json', [null, 5, { type: 5, path: 7 }]],
    ['tokenizer_config.json', []],
    ['tokenizer_config.json', { model_max_length: 1e30 }],
    ['config.json', true],
    ['config_sentence_transformers.json', { prompts: [] }],
    ['config_sentence_transformers.json', { prompts: { query: 5, document: null } }],
    ['1_Pooling/config.json', null],
  ])(
    'an ONNX model whose %s is %j is loaded without it, or refused with the name of the file',
    async (name, content) => {
      await withModel({ [name]: content }, async (folder) => {
        try {
          const embedder = await createOnnxEmbedder(folder, undefined);
          expect(await embedder.embedQuery('zebra')).toHaveLength(5);
          await embedder.close();
        } catch (error) {
          expect((error as Error).message).toContain(name);
        }
      });
    },
  );

  test.each([null, [], true, 5])(
    'an ONNX model whose tokenizer.json is %j is refused with its name',
    async (content) => {
      await withModel({ 'tokenizer.json': content }, async (folder) => {
        await expect(createOnnxEmbedder(folder, undefined)).rejects.toThrow(
          /tokenizer\.json is not a JSON object/,
        );
      });
    },
  );
});
