import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { serve } from '../kit/process.ts';

const KEY = 'sk-canary-0123456789';
const keyed = { name: 'm', provider: 'oaiCompat', params: { apiKey: KEY } };
const apiKey = { mode: 'strict', keys: [{ keyHash: `sha256:${'a'.repeat(64)}` }] };
const route = (more: object = {}, backend: object = { models: [keyed] }): object => ({
  backends: [{ llm: backend }],
  ...more,
});

const routeTo = (backend: object, policies?: object): object => ({
  gateways: { a: { port: 4000, routes: [{ backends: [backend], ...(policies && { policies }) }] } },
});

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
beforeAll(async () => {
  folder = await temporaryFolder();
});
afterAll(() => folder.remove());
let files = 0;

/** Warnings of `config validate` that are about open LLM ports: their paths. */
async function warnings(config: object): Promise<string[]> {
  files += 1;
  const file = join(folder.path, `config-${files}.yaml`);
  writeFileSync(file, JSON.stringify(config));
  const { stdout } = await cli(['config', 'validate', '-f', file, '-o', 'json']);
  expect(stdout).not.toContain(KEY);
  const { diagnostics } = JSON.parse(stdout) as {
    diagnostics: { code: string; severity: string; path: string }[];
  };
  return diagnostics
    .filter(({ code }) => code === 'AGW0312')
    .map(({ severity, path }) => `${severity} ${path}`);
}

describe('unauthenticated access to a provider key', () => {
  test.each([
    ['in the short form', { llm: { port: 4000, models: [keyed] } }, '/llm'],
    ['in the short form, with the default port', { llm: { models: [keyed] } }, '/llm'],
    [
      'on a gateway',
      { gateways: { a: { port: 4000, routes: [route()] } } },
      '/gateways/a/routes/0/backends/0/llm',
    ],
    [
      'on 0.0.0.0',
      { gateways: { a: { port: 4000, address: '0.0.0.0' } }, llm: { gateways: 'a', models: [keyed] } },
      '/llm',
    ],
    [
      'on ::',
      { gateways: { a: { port: 4000, address: '::' } }, llm: { gateways: 'a', models: [keyed] } },
      '/llm',
    ],
    [
      'of a shared provider entry',
      {
        llm: {
          providers: [{ name: 'p', provider: 'oaiCompat', params: { apiKey: KEY } }],
          models: [{ name: 'm', provider: { reference: 'p' } }],
        },
      },
      '/llm',
    ],
    [
      'in a header that the configuration sets',
      {
        llm: {
          models: [{ name: 'm', provider: 'oaiCompat', requestHeaders: { set: { 'x-api-key': KEY } } }],
        },
      },
      '/llm',
    ],
    [
      'that `backendAuth` adds for a service',
      routeTo({ host: '127.0.0.1:1' }, { backendAuth: { key: KEY } }),
      '/gateways/a/routes/0/backends/0/host',
    ],
    ['beside policies that ask for nothing', { llm: { models: [keyed], policies: { timeout: {} } } }, '/llm'],
  ])('unauthenticated access to a provider key is a warning: %s', async (_, config, path) => {
    expect(await warnings(config)).toEqual([`warning ${path}`]);
  });

  const target = (of: object): object => ({ mcp: { targets: [{ name: 'a', ...of }] } });
  const MCP_PATH = '/gateways/a/routes/0/backends/0/mcp';
  const shop = { schema: { url: 'http://127.0.0.1:1/openapi.json' } };

  test.each([
    ['a child process', routeTo(target({ stdio: { cmd: 'server' } })), MCP_PATH],
    [
      'an HTTP server, such as a memory',
      routeTo(target({ mcp: { host: 'http://127.0.0.1:1/mcp' } })),
      MCP_PATH,
    ],
    [
      'a server with the older transport',
      routeTo(target({ sse: { host: 'http://127.0.0.1:1/sse' } })),
      MCP_PATH,
    ],
    [
      'an API with an OpenAPI document',
      routeTo(target({ openapi: { host: 'http://127.0.0.1:1', ...shop } })),
      MCP_PATH,
    ],
    ['the short form', { mcp: { targets: [{ name: 'a', stdio: { cmd: 'server' } }] } }, '/mcp'],
    [
      'rules on tools, which name no caller',
      routeTo(target({ stdio: { cmd: 'server' } }), {
        mcpAuthorization: { rules: ['mcp.tool.name == "x"'] },
      }),
      MCP_PATH,
    ],
  ])('unauthenticated access to MCP servers is a warning: %s', async (_, config, path) => {
    expect(await warnings(config)).toEqual([`warning ${path}`]);
  });

  test('unauthenticated access to MCP servers is not a warning on loopback, or with a key', async () => {
    const stdio = target({ stdio: { cmd: 'server' } });
    expect(await warnings(routeTo(stdio, { apiKey }))).toEqual([]);
    const local = { port: 4000, address: '127.0.0.1', routes: [{ backends: [stdio] }] };
    expect(await warnings({ gateways: { a: local } })).toEqual([]);
  });

  test.each([
    [
      'a credential that the client sends',
      routeTo({ host: '127.0.0.1:1' }, { backendAuth: { passthrough: {} } }),
    ],
    ['a key of the client', { llm: { models: [keyed], policies: { apiKey } } }],
    [
      'rules',
      { llm: { models: [keyed], policies: { authorization: { rules: ['source.address == "10.0.0.1"'] } } } },
    ],
    [
      'an authorization service',
      { llm: { models: [keyed], policies: { extAuthz: { host: '127.0.0.1:9', protocol: { http: {} } } } } },
    ],
    [
      'a loopback address',
      { gateways: { a: { port: 4000, address: '127.0.0.1' } }, llm: { gateways: 'a', models: [keyed] } },
    ],
    [
      'an address of one network',
      { gateways: { a: { port: 4000, address: '10.0.0.1' } }, llm: { gateways: 'a', models: [keyed] } },
    ],
    ['a model without a key', { llm: { models: [{ name: 'm', provider: 'oaiCompat' }] } }],
    ['the built-in model', { llm: { models: [{ name: 'm', provider: 'echo' }] } }],
  ])('unauthenticated access is not a warning where there is %s', async (_, config) => {
    expect(await warnings(config)).toEqual([]);
  });

  test('unauthenticated access to a provider key is in the report of `check` and the banner of `serve`', async () => {
    const config = { llm: { port: 0, models: [keyed] } };
    const file = join(folder.path, 'open.yaml');
    writeFileSync(file, JSON.stringify(config));
    const { code, stdout } = await cli(['check', '-f', file, '--only', 'config']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/line 1: anyone who reaches port 0 can call models with your provider key/);
    expect(stdout).toContain('apiKey: { mode: strict');
    await using open = await serve(JSON.stringify(config));
    expect(open.stderr).toContain('warning[AGW0312]: anyone who reaches port 0 can call models');
    expect(open.stderr).toMatch(
      /\n {4}! anyone who reaches port \d{2,5} can call models with your provider key/,
    );
    await using bound = await serve(JSON.stringify({ llm: { ...config.llm, policies: { apiKey } } }));
    expect(bound.stderr).not.toContain('anyone who reaches');
  });

  test('no example of this package permits unauthenticated access to a provider key', async () => {
    const examples = new URL('../../examples/llm.yaml', import.meta.url).pathname;
    const { stdout } = await cli(['config', 'validate', '-f', examples, '-o', 'json']);
    expect(stdout).not.toContain('AGW0312');
  });
});
