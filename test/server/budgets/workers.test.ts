import { describe, expect, test } from 'vitest';
import { createKey, FORMATS, PRICES } from '../../kit/budgets.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { CHAT, llmProvider } from '../../kit/llm-provider.ts';
import { freshly, workerGateway } from '../../kit/workers.ts';

/** May use 21 tokens, and uses 19. */
const SMALL = { ...CHAT, max_tokens: 20 };

describe('budgets and virtual keys of a gateway with workers', () => {
  test('all workers take from the same budget, and refuse a revoked key at once', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    await using gate = await workerGateway({
      config: {
        adminAddr: 'off',
        workers: 2,
        connectionTerminationDeadline: '100ms',
        database: { url: `sqlite://${folder.path}/agctl.db` },
        modelCatalog: [{ inline: PRICES }],
      },
      llm: {
        port: 0,
        models: [
          {
            name: '*',
            provider: { custom: { providerOverride: 'openai', formats: FORMATS } },
            params: { baseUrl: `http://${provider.address}/v1` },
          },
        ],
        policies: {
          apiKey: { mode: 'strict', virtualKeys: {} },
          budgets: [{ name: 'all', limit: '1USD/total' }],
        },
      },
    });
    const status = async (key: string): Promise<number> => {
      const { status: code } = await freshly(`${gate.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
        body: JSON.stringify(SMALL),
      });
      return code;
    };
    const ann = await createKey(gate, { name: 'ann', budgets: ['100tokens/total'] });
    const bob = await createKey(gate, { name: 'bob' });
    const statuses: number[] = [];
    for (let count = 0; count < 8; count++) statuses.push(await status(ann.secret));
    // 4 calls of 19 tokens are 76; the fifth may use 21.
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429, 429, 429]);
    await Promise.all([bob, bob, bob, bob].map(({ secret }) => status(secret)));
    const { text } = await freshly(`${gate.admin}/api/budgets`);
    expect(JSON.parse(text)).toMatchObject({ subjects: [{ name: 'all', spent: '0.171' }] });
    await freshly(`${gate.admin}/api/keys/revoke`, {
      method: 'POST',
      body: JSON.stringify({ key: 'bob' }),
    });
    expect(await Promise.all([1, 2, 3, 4].map(() => status(bob.secret)))).toEqual([401, 401, 401, 401]);
  });
});
