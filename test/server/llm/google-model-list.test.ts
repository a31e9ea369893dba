import { GoogleGenAI } from '@google/genai';
import { expect, test } from 'vitest';
import { modelsGateway } from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';

const MODELS = ['acme/large', 'small'].map((name) => ({ name, provider: 'echo' }));

test('@google/genai lists the models of the gateway, and reads one', async () => {
  await using gate = await modelsGateway(MODELS);
  const { models } = new GoogleGenAI({ apiKey: 'any-key', httpOptions: { baseUrl: gate.url } });
  const names: unknown[] = [];
  for await (const { name, displayName } of await models.list()) names.push([name, displayName]);
  expect(names).toEqual([
    ['models/acme/large', 'acme/large'],
    ['models/small', 'small'],
  ]);
  expect(await models.get({ model: 'small' })).toMatchObject({ name: 'models/small' });
  expect(await models.get({ model: 'models/acme/large' })).toMatchObject({ name: 'models/acme/large' });
  await expect(models.get({ model: 'other' })).rejects.toMatchObject({ status: 404 });
});

test('the model list of the Gemini API has only the models that the key of the client allows', async () => {
  const keys = [{ key: 'client-key', allowedModels: ['small'] }];
  await using gate = await modelsGateway(MODELS, { policies: { apiKey: { mode: 'strict', keys } } });
  const read = async (path: string): Promise<unknown> =>
    JSON.parse((await send(`${gate.url}${path}`, { headers: { 'x-goog-api-key': 'client-key' } })).text);
  expect(await read('/v1beta/models')).toEqual({
    models: [expect.objectContaining({ name: 'models/small' })],
  });
  expect(await read('/v1beta/models/acme/large')).toEqual({
    error: {
      code: 403,
      message:
        'Model is not allowed for this API key: "acme/large"; GET /v1/models lists the models that you may use',
      status: 'PERMISSION_DENIED',
    },
  });
});
