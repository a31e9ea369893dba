import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';

// A key of an imported file must not reach a host that did not get it before, whatever names variables have.

/** The texts of the files that `agctl init` writes. */
async function imported(file: string, content: object) {
  await using folder = await temporaryFolder();
  const cwd = folder.path;
  writeFileSync(join(cwd, file), JSON.stringify(content));
  const made = await cli(['init', '--yes', '--from', file], { cwd, env: { HOME: cwd } });
  expect([made.code, made.stderr]).toEqual([0, '']);
  const text = readFileSync(join(cwd, 'gateway.yaml'), 'utf8');
  const variables = new Map(
    readFileSync(join(cwd, 'gateway.env'), 'utf8')
      .split('\n')
      .flatMap((line) => {
        const [, name, value] = /^(\w+)=['"]?(.*?)['"]?$/.exec(line) ?? [];
        return name === undefined ? [] : [[name, value ?? ''] as const];
      }),
  );
  const models: { name: string; params: { apiKey?: string } }[] = parse(text).llm.models;
  const keyOf = (name: string): string | undefined => {
    const reference = models.find((model) => model.name === name)?.params.apiKey;
    return variables.get(/^\$\{(\w+)\}$/.exec(reference ?? '')?.[1] ?? '');
  };
  return { text, models, variables, keyOf };
}

describe('keys of LiteLLM', () => {
  const model = (name: string, more: object) => ({
    model_name: name,
    litellm_params: { model: name.includes('*') ? name : 'anthropic/claude-a', ...more },
  });
  const literal = model('anthropic/*', { api_base: 'http://a.example', api_key: 'sk-literal-key' });
  const referring = model('backup', {
    api_base: 'http://b.example',
    api_key: 'os.environ/ANTHROPIC_API_KEY',
  });
  const without = model('nokey', { api_base: 'http://c.example' });

  test.each([
    ['first', [literal, referring, without]],
    ['last', [without, referring, literal]],
  ])('a key in the file that comes %s is that of its model alone', async (_, list) => {
    const { keyOf, variables } = await imported('config.yaml', { model_list: list });
    expect(keyOf('anthropic/*')).toBe('sk-literal-key');
    expect([keyOf('backup'), keyOf('nokey')]).toEqual(['change-me', 'change-me']);
    expect(variables.get('ANTHROPIC_API_KEY')).toBe('change-me');
  });

  test('a master key that is not filled in yet cannot be guessed', async () => {
    const { variables } = await imported('config.yaml', {
      model_list: [referring],
      general_settings: { master_key: 'os.environ/LITELLM_MASTER_KEY' },
    });
    expect(variables.get('LITELLM_MASTER_KEY')).toMatch(/^change-me-[\w-]{24}$/);
  });

  test('secrets in `extra_body` are not written into the configuration', async () => {
    const body = { api_token: 'sk-one', metadata: { password: 'sk-two' }, keep: 'text' };
    const { text, variables } = await imported('config.yaml', {
      model_list: [model('a', { api_key: 'sk-three', extra_body: body })],
    });
    expect(text).not.toMatch(/sk-(?:one|two|three)/);
    expect(text).toContain('keep: text');
    expect([...variables.values()].sort()).toEqual(expect.arrayContaining(['sk-one', 'sk-three', 'sk-two']));
  });
});

describe('keys of Portkey', () => {
  const openai = (more: object) => ({ provider: 'openai', ...more });
  const fallback = (...targets: object[]) => ({ strategy: { mode: 'fallback' }, targets });

  test.each([
    ['without a key', {}],
    ['with an empty key', { api_key: '' }],
    ['with a virtual key of the name', { virtual_key: 'openai-api-key' }],
  ])('a target %s does not get that of another one', async (_, more) => {
    const { models, variables } = await imported(
      'portkey.json',
      fallback(openai({ api_key: 'sk-internal', custom_host: 'http://a.example' }), openai(more)),
    );
    const [first, second] = models.map(({ params }) => params.apiKey);
    expect(first).not.toBe(second);
    expect(variables.get(/\w+/.exec(first ?? '')?.[0] ?? '')).toBe('sk-internal');
    expect(variables.get(/\w+/.exec(second ?? '')?.[0] ?? '')).toBe('change-me');
  });

  test('secrets in `override_params` are not written into the configuration', async () => {
    const more = {
      override_params: { api_token: 'sk-one', metadata: { auth_token: 'sk-two' }, keep: 'text' },
    };
    const { text } = await imported('portkey.json', openai({ api_key: 'sk-three', ...more }));
    expect(text).not.toMatch(/sk-(?:one|two|three)/);
    expect(text).toContain('keep: text');
  });
});
