import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { banner } from '../../src/cli/banner.ts';
import type { Overview } from '../../src/core/overview.ts';
import { loadConfigText } from '../../src/server/config/load.ts';
import type { Config } from '../../src/server/config/schema.ts';
import type { ConfigDump, DumpEndpointSet } from '../../src/server/kernel/config-dump.ts';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway } from '../kit/gateway.ts';
import { answering, llmProvider } from '../kit/llm-provider.ts';
import { send } from '../kit/send.ts';
import { refusingPort } from '../kit/upstream.ts';

const KEY = 'sk-canary-of-an-ai-backend';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
beforeAll(async () => {
  folder = await temporaryFolder();
});
afterAll(() => folder.remove());

const provider = (name: string, more: object = {}, model?: string): object => ({
  name,
  provider: { openAI: model === undefined ? {} : { model } },
  ...more,
});

const configOf = (ai: object, policies: object = {}): string =>
  JSON.stringify({
    gateways: {
      default: { port: 0, address: '127.0.0.1', routes: [{ policies, backends: [{ ai }] }] },
    },
  });

async function check(ai: object): Promise<{ message: string; fix?: string; status: string }[]> {
  const file = join(folder.path, 'check.yaml');
  writeFileSync(file, configOf(ai));
  const { stdout, stderr } = await cli(['check', '-f', file, '--only', 'llm', '-o', 'json']);
  expect(stdout + stderr).not.toContain(KEY);
  return JSON.parse(stdout).checks;
}

describe('an `ai` backend is known to all commands', () => {
  test('`config validate --strict` accepts limits of tokens', async () => {
    const file = join(folder.path, 'limits.yaml');
    const limits = {
      localRateLimit: [{ maxTokens: 10, tokensPerFill: 1, fillInterval: '1s', type: 'tokens' }],
    };
    writeFileSync(file, configOf(provider('openai'), limits));
    const { code, stdout, stderr } = await cli(['config', 'validate', '--strict', '-f', file]);
    expect({ code, output: stdout + stderr }).toEqual({
      code: 0,
      output: expect.not.stringContaining('AGW'),
    });
  });

  test('`config validate` warns of limits of tokens on a route without models', async () => {
    const file = join(folder.path, 'no-models.yaml');
    const localRateLimit = [{ maxTokens: 10, tokensPerFill: 1, fillInterval: '1s', type: 'tokens' }];
    const routes = [{ policies: { localRateLimit }, backends: [{ host: '127.0.0.1:9' }] }];
    writeFileSync(file, JSON.stringify({ gateways: { default: { port: 0, address: '127.0.0.1', routes } } }));
    const { code, stdout, stderr } = await cli(['config', 'validate', '--strict', '-f', file]);
    expect(code).toBe(1);
    expect(stdout + stderr).toContain('AGW0303');
  });

  test('`check` requests the models of its provider with the key', async () => {
    await using upstream = await llmProvider(answering('{"object":"list","data":[]}'));
    const found = await check(
      provider('mine', {
        hostOverride: `127.0.0.1:${upstream.port}`,
        policies: { backendAuth: { key: KEY } },
      }),
    );
    expect(found).toEqual([
      expect.objectContaining({
        status: 'ok',
        message: `mine   127.0.0.1:${upstream.port} lists its models and accepts the key`,
      }),
    ]);
    const [call] = upstream.received;
    expect(call?.target).toBe('/v1/models');
    expect(call?.headers['authorization']).toBe(`Bearer ${KEY}`);
  });

  test('`check` names its settings if the provider does not answer', async () => {
    const port = await refusingPort();
    const found = await check(provider('mine', { hostOverride: `127.0.0.1:${port}` }));
    expect(found).toEqual([
      expect.objectContaining({ status: 'fail', fix: expect.stringContaining('correct hostOverride') }),
    ]);
  });

  test('`check` asks for a key only if the provider gets no other credential', async () => {
    const messages = async (backendAuth: object): Promise<string> => {
      const file = join(folder.path, 'offline.yaml');
      writeFileSync(file, configOf(provider('openai', { policies: { backendAuth } })));
      return (await cli(['check', '-f', file, '--only', 'llm', '--offline', '-o', 'json'])).stdout;
    };
    expect(await messages({ passthrough: {} })).toContain('set policies.backendAuth.key');
    writeFileSync(join(folder.path, 'key.txt'), KEY);
    expect(await messages({ key: { file: join(folder.path, 'key.txt') } })).not.toContain('no key');
  });

  test('the banner, the overview and the dump show its providers by group', async () => {
    const yaml = configOf({
      groups: [
        { providers: [provider('first', { hostOverride: '127.0.0.1:9' }, 'gpt-x'), provider('second')] },
        { providers: [provider('third', { policies: { backendAuth: { key: KEY } } })] },
      ],
    });
    await using gate = await gateway(yaml, { admin: true });
    const shown = banner({
      file: 'gateway.yaml',
      warnings: '',
      admin: undefined,
      config: loadConfigText(yaml, 'gateway.yaml', {}).config as Config,
      ms: 1,
      gateway: gate.running,
    });
    expect(shown).toContain('ai first (gpt-x), second, third');

    const overview: Overview = JSON.parse((await send(`${gate.admin}/api/overview`)).text);
    const [backend] = overview.gateways[0]?.routes[0]?.backends ?? [];
    expect(backend).toMatchObject({ kind: 'ai', api: 'llm', modelNames: ['gpt-x', '*'] });
    expect(backend?.models?.map(({ name, provider: of, address }) => [name, of, address])).toEqual([
      ['first', 'openAI', 'http://127.0.0.1:9'],
      ['second', 'openAI', undefined],
      ['third', 'openAI', undefined],
    ]);

    const text = (await send(`${gate.admin}/config_dump`)).text;
    expect(text).not.toContain(KEY);
    const { backends }: ConfigDump = JSON.parse(text);
    const target = backends.flatMap((each) => each.backend['ai']?.target ?? [])[0] as {
      readonly providers: readonly DumpEndpointSet[];
    };
    expect(target.providers.map(({ active }) => Object.keys(active))).toEqual([
      ['first', 'second'],
      ['third'],
    ]);
    expect(target.providers[0]?.active['first']?.endpoint).toMatchObject({
      provider: { openAI: { model: 'gpt-x' } },
      hostOverride: '127.0.0.1:9',
    });
  });
});
