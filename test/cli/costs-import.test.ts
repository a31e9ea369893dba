import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseRate, roundedRate } from '../../src/server/llm/cost/decimal.ts';
import { importModelsDev } from '../../src/server/llm/cost/models-dev.ts';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway } from '../kit/gateway.ts';
import { CHAT, chat } from '../kit/llm-provider.ts';

// In the format of https://models.dev/api.json, with invented prices.
const LIST = {
  openai: {
    id: 'openai',
    name: 'OpenAI',
    env: ['OPENAI_API_KEY'],
    models: {
      'acme-mini': {
        id: 'acme-mini',
        limit: { context: 400_000 },
        cost: { input: 0.1, output: 0.2, cache_read: 0.025, input_audio: 3, reasoning: 0.2 },
      },
      'acme-long': {
        cost: {
          input: 5,
          output: 30,
          tiers: [{ input: 10, output: 45, tier: { type: 'context', size: 272_000 } }],
          context_over_200k: { input: 10, output: 45 },
        },
      },
      'acme-older': { cost: { input: 1, output: 2, context_over_200k: { input: 2 } } },
      'acme-gone': { status: 'deprecated', cost: { input: 9 } },
      'acme-unpriced': { limit: {} },
    },
  },
  'amazon-bedrock': { models: { m: { cost: { input: 0, output: 0 } } } },
  'somebody-else': { models: { m: { cost: { input: 1 } } } },
};
const all = { includeDeprecated: false };

describe('conversion of a model list to a price catalog', () => {
  test('costs import includes the providers that a gateway supports under their names there', () => {
    const { catalog, warnings } = importModelsDev(LIST, all);
    expect(warnings).toEqual([]);
    expect(catalog).toEqual({
      providers: {
        'aws.bedrock': { models: { m: { rates: { input: '0', output: '0' } } } },
        openai: {
          models: {
            'acme-long': {
              rates: { input: '5', output: '30' },
              tiers: [{ contextOver: 272_000, rates: { input: '10', output: '45' } }],
            },
            'acme-mini': {
              rates: { input: '0.1', output: '0.2', cacheRead: '0.025', reasoning: '0.2', inputAudio: '3' },
            },
            'acme-older': {
              rates: { input: '1', output: '2' },
              tiers: [{ contextOver: 200_000, rates: { input: '2' } }],
            },
          },
        },
      },
    });
  });

  test('costs import includes other providers when named and deprecated models on request', () => {
    const names = (options: Parameters<typeof importModelsDev>[1]): string[] =>
      Object.entries(importModelsDev(LIST, options).catalog.providers).flatMap(([name, { models }]) =>
        Object.keys(models).map((model) => `${name} ${model}`),
      );
    expect(names({ ...all, providers: ['somebody-else', 'aws.bedrock'] })).toEqual([
      'aws.bedrock m',
      'somebody-else m',
    ]);
    expect(names({ providers: ['openai'], includeDeprecated: true })).toContain('openai acme-gone');
  });

  test('costs import keeps prices of up to six decimals exact', () => {
    fc.assert(
      fc.property(fc.nat(10 ** 10), (millionths) => {
        const rate = roundedRate(Number(`${millionths}e-6`));
        expect(rate?.isExact).toBe(true);
        expect(parseRate(rate?.text ?? '')).toBe(BigInt(millionths));
      }),
    );
  });

  test.each<[string, object, string | undefined]>([
    ['is negative', { input: -1 }, undefined],
    ['is a text', { input: '0.5' }, undefined],
    [
      'has a tier of another kind',
      { input: 1, tiers: [{ input: 2, tier: { type: 'time', size: 1 } }] },
      undefined,
    ],
    ['has no tier size', { input: 1, tiers: [{ input: 2 }] }, undefined],
    ['has more decimals', { input: 0.12345678 }, '0.123457'],
    ['has noise of binary fractions', { input: 0.1 + 0.2 }, '0.3'],
  ])('costs import omits or rounds a price that %s with a warning', (_, cost, input) => {
    const list = { openai: { models: { odd: { cost }, fine: { cost: { input: 1 } } } } };
    const { catalog, warnings } = importModelsDev(list, all);
    expect(catalog.providers['openai']?.models['odd']?.rates.input).toBe(input);
    expect(catalog.providers['openai']?.models).toHaveProperty('fine');
    expect(warnings.join('\n')).toMatch(/^openai odd: cost\.[\w.]+ is /);
  });

  test('costs import accepts any model name', () => {
    const list = { openai: { models: { constructor: { cost: { input: 2 } } } } };
    expect(JSON.stringify(importModelsDev(list, all).catalog)).toBe(
      '{"providers":{"openai":{"models":{"constructor":{"rates":{"input":"2"}}}}}}',
    );
  });
});

describe('agctl costs import', () => {
  test('costs import writes a catalog that a gateway uses for prices', async () => {
    await using folder = await temporaryFolder();
    // The built-in model counts words: 1 in, 1 out.
    const models = { [CHAT.model]: { cost: { input: 500_000, output: 250_000.5 } } };
    await writeFile(join(folder.path, 'models.json'), JSON.stringify({ echo: { models } }));
    const args = ['costs', 'import', '-f', 'models.json', '--providers', 'echo', '-o', 'prices.json'];
    const done = await cli(args, { cwd: folder.path });
    expect(done).toMatchObject({ code: 0, stdout: '', stderr: 'imported 1 provider\n' });
    expect((await stat(join(folder.path, 'prices.json'))).mode & 0o777).toBe(0o600);
    expect(await readdir(folder.path)).toHaveLength(2);
    const config = { adminAddr: 'off', modelCatalog: [{ file: 'prices.json' }] };
    const llm = { port: 0, models: [{ name: '*', provider: 'echo' }] };
    await using served = await gateway(JSON.stringify({ config, llm }), { folder: folder.path });
    await chat(served);
    expect((await served.accessLine(1))['gw.ai.usage.cost.total']).toBe('0.7500005');
  });

  test('costs import has the alias `catalog import`, reads standard input and prints the catalog', async () => {
    const { code, stdout, stderr } = await cli(['catalog', 'import', '-f', '-', '--source', 'models.dev'], {
      input: JSON.stringify(LIST),
    });
    expect([code, stderr]).toEqual([0, 'imported 2 providers\n']);
    expect(JSON.parse(stdout)).toEqual(importModelsDev(LIST, all).catalog);
    expect(stdout.endsWith('}\n')).toBe(true);
  });

  test.each<[string, string, readonly string[], number, string]>([
    ['nothing', '', [], 2, '- is not JSON'],
    ['another form', '[1]', [], 2, 'not a list of models in the format of models.dev'],
    ['a catalog', '{"providers":{}}', [], 2, 'a price catalog already'],
    [
      'an unknown provider',
      JSON.stringify(LIST),
      ['--providers', 'nobody'],
      2,
      'no providers matched `nobody`',
    ],
    ['no prices', '{"openai":{"models":{}}}', [], 1, 'no importable models matched'],
  ])('costs import rejects %s', async (_, input, more, code, message) => {
    const done = await cli(['costs', 'import', '-f', '-', ...more], { input });
    expect([done.code, done.stdout]).toEqual([code, '']);
    expect(done.stderr).toContain(message);
  });

  test('costs import keeps the old catalog when the new one cannot be created', async () => {
    await using folder = await temporaryFolder();
    const out = join(folder.path, 'prices.json');
    await writeFile(out, 'old');
    const done = await cli(['costs', 'import', '-f', '-', '-o', out], { input: '{"openai":' });
    expect(done.code).toBe(2);
    expect(await readFile(out, 'utf8')).toBe('old');
    const missing = await cli(['costs', 'import', '-f', '-', '-o', join(folder.path, 'no', 'x.json')], {
      input: JSON.stringify(LIST),
    });
    expect(missing.code).toBe(1);
    expect(missing.stderr).toContain('cannot write');
  });
});
