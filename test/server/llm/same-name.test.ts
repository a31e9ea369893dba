import { describe, expect, test } from 'vitest';
import {
  answering,
  CHAT,
  chat,
  completion,
  errorOf,
  llmProvider,
  modelsGateway,
} from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';

/** Which of these entries, by its place, answers a request with these headers. */
async function asked(
  entries: readonly object[],
  model: string,
  headers: Record<string, string> = {},
): Promise<string> {
  const providers = await Promise.all(
    entries.map((_, index) => llmProvider(answering(completion(`${index}`)))),
  );
  try {
    const models = entries.map((entry, index) => ({
      provider: 'oaiCompat',
      params: { baseUrl: `http://${providers[index]?.address}/v1` },
      ...entry,
    }));
    const virtualModels = [{ name: 'any', routing: { weighted: { targets: [{ model: 'acme' }] } } }];
    await using gate = await modelsGateway(models, { virtualModels });
    const reply = await chat(gate, { ...CHAT, model }, headers);
    if (reply.status !== 200) return errorOf(reply).code;
    return (JSON.parse(reply.text) as { choices: { message: { content: string } }[] }).choices[0]?.message
      .content as string;
  } finally {
    await Promise.all(providers.map((provider) => provider.close()));
  }
}

const when = (name: string, value: object) => ({ headers: [{ name, value }] });
const TEAM_A = when('x-team', { exact: 'a' });
const BETA = when('x-beta', { regex: 'yes|on' });

describe('models with the same name', () => {
  const entries = [
    { name: 'acme', matches: [TEAM_A] },
    {
      name: 'acme',
      matches: [BETA, { headers: [...when('x-team', { exact: 'b' }).headers, ...BETA.headers] }],
    },
    { name: 'acme*' },
    { name: '*', matches: [when('x-team', { exact: 'c' })] },
  ];

  test.each([
    [{ 'x-team': 'a' }, 'acme', '0'],
    [{ 'x-team': 'a', 'x-beta': 'yes' }, 'acme', '0'],
    [{ 'x-beta': 'on' }, 'acme', '1'],
    [{ 'x-beta': 'only' }, 'acme', '2'],
    [{}, 'acme', '2'],
    [{}, 'acme-large', '2'],
    [{ 'x-team': 'c' }, 'other', '3'],
    [{ 'x-team': 'a' }, 'other', 'model_not_found'],
    [{ 'x-beta': 'on' }, 'any', '1'],
  ])(
    'models with the same name are matched by specificity, then in file order: %j asks %s of entry %s',
    async (headers, model, entry) => {
      expect(await asked(entries, model, headers)).toBe(entry);
    },
  );

  test('exact model names take precedence over patterns in any order', async () => {
    const turned = [{ name: '*' }, { name: 'acme' }, { name: 'acme', matches: [TEAM_A] }];
    expect(await asked(turned, 'acme', { 'x-team': 'a' })).toBe('1');
    expect(await asked(turned, 'other', { 'x-team': 'a' })).toBe('0');
  });

  test('models with the same name are one entry in the list of models', async () => {
    await using gate = await modelsGateway([
      { name: 'acme', provider: 'echo', matches: [TEAM_A] },
      { name: 'acme', provider: 'echo' },
    ]);
    const { data } = JSON.parse((await send(`${gate.url}/v1/models`)).text) as { data: { id: string }[] };
    expect(data.map(({ id }) => id)).toEqual(['acme']);
    expect((await send(`${gate.url}/v1/models/acme`)).status).toBe(200);
  });
});
