// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of configurations.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { Variables } from '../../src/cli/init/variables.ts';
import { LIMITS } from '../../src/core/limits.ts';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { npmPackage, serverJson } from '../kit/server-json.ts';

// Files with servers come from elsewhere: whoever wrote one must not write other lines than those of the server, to a file or a terminal.

const SECRET = 'ghp_0123456789abcdefghij';

/** Runs `agctl add srv` or `agctl init` with a file of this content. */
async function given(content: object | string, args: readonly string[] = ['add', 'srv']) {
  await using folder = await temporaryFolder();
  const cwd = folder.path;
  const before = 'gateways: { default: { port: 0, address: 127.0.0.1 } }\nmcp: { targets: [] }\n';
  if (args[0] === 'add') writeFileSync(join(cwd, 'gateway.yaml'), before);
  writeFileSync(join(cwd, 'foreign.json'), typeof content === 'string' ? content : JSON.stringify(content));
  const result = await cli([...args, '--from', 'foreign.json'], { cwd, env: { HOME: cwd } });
  const read = (name: string): string => {
    try {
      return readFileSync(join(cwd, name), 'utf8');
    } catch {
      return '';
    }
  };
  const [text, variables] = [read('gateway.yaml'), read('gateway.env')];
  return { ...result, text, variables, isChanged: text !== before, said: result.stdout + result.stderr };
}

const inPackage = (more: object) => serverJson({ packages: [npmPackage(more)] });
const FORGED = 'x\nUV_INDEX_URL=https://evil.example\nadded    evil\u001b[2J';

describe.each([
  ['add', ['add', 'srv']],
  ['init', ['init', '--yes', '--with', 'mcp']],
])('names and texts of a client’s file for %s', (_command, args) => {
  test('write no line of their own to gateway.env, gateway.yaml or the terminal', async () => {
    const server = { command: 'npx', args: [FORGED], env: { API_TOKEN: SECRET }, [FORGED]: 1 };
    const { code, text, variables, said } = await given({ mcpServers: { [FORGED]: server } }, args);
    expect(code).toBe(0);
    expect(Object.entries(parseEnv(variables))).toEqual([[expect.stringMatching(/_API_TOKEN$/), SECRET]]);
    expect(parse(text).mcp.targets[0].stdio.args).toEqual([FORGED]);
    expect(said).toContain('gateway.env');
    expect(said.split('\n').filter((line) => /^(?:UV_|added {4}evil)/.test(line))).toEqual([]);
    expect(said + variables).not.toContain('\u001b');
  });

  test('of a server that is left out write no line of their own', async () => {
    const mcpServers = { [FORGED]: { command: 5 }, good: { command: 'npx' } };
    const { said } = await given({ mcpServers }, [
      ...args,
      ...(args[0] === 'add' ? ['--server', 'good'] : []),
    ]);
    expect(said.split('\n').filter((line) => /^(?:UV_|added {4}evil)/.test(line))).toEqual([]);
    expect(said).not.toContain('\u001b');
  });
});

describe('server.json', () => {
  test.each([
    ['in the file', `{"packages":${'['.repeat(200_000)}${']'.repeat(200_000)}}`],
    [
      'in choices',
      JSON.stringify(
        inPackage({ environmentVariables: [{ name: 'A', choices: 'X', isRequired: true }] }),
      ).replace('"X"', '['.repeat(20_000) + ']'.repeat(20_000)),
    ],
  ])('lists nested deeply %s are refused as such', async (_where, text) => {
    const { code, stderr, isChanged } = await given(text);
    expect([code, isChanged]).toEqual([2, false]);
    expect(stderr).toContain('cannot import foreign.json: lists and objects are nested too deeply');
  });

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    'the name %s is a name like others, or refused',
    async (name) => {
      const isRefused = ['__proto__', 'constructor'].includes(name);
      const package_ = await given(
        inPackage({ environmentVariables: [{ name, value: 'x' }], runtimeHint: name }),
      );
      const remotes = [
        { type: 'streamable-http', url: 'https://a.example/mcp', headers: [{ name, value: 'x' }] },
      ];
      const remote = await given(serverJson({ remotes }));
      for (const { code, said, isChanged } of [package_, remote])
        if (isRefused) {
          expect([code, isChanged]).toEqual([1, false]);
          expect(said).toContain(`\`${name}\` cannot be used as a key`);
        } else expect(code).toBe(0);
      if (!isRefused) expect(parse(package_.text).mcp.targets[0].stdio.env).toEqual({ [name]: 'x' });
      expect((await given(inPackage({ registryType: name }))).said).toContain(
        `the registry \`${name}\` cannot be started`,
      );
    },
  );

  test('texts stay texts in the configuration, whatever YAML or variables make of them', async () => {
    const values = [
      'a: b # c',
      '*x',
      '&y z',
      '!!js/function x',
      '${HOME}',
      '$HOME',
      '- y',
      '{a: 1}',
      '"',
      "'",
      '# From',
      '---',
      '...',
      '%YAML',
      '~',
      'null',
      '0x10',
      '`',
      '\\n',
      ' x ',
    ];
    const { code, text } = await given(
      inPackage({ packageArguments: values.map((value) => ({ type: 'positional', value })) }),
    );
    expect(code).toBe(0);
    const { args } = parse(text).mcp.targets[0].stdio;
    expect(args.slice(2).map((each: string) => each.replaceAll('$$', '$'))).toEqual(values);
  });

  test.each([
    [
      'environmentVariables[1].name',
      inPackage({ environmentVariables: [{ name: 'A' }, { name: 'B\nC=1' }] }),
    ],
    ['environmentVariables[0].name', inPackage({ environmentVariables: [{ name: 'A B', value: '1' }] })],
    [
      'headers[1].name',
      serverJson({
        remotes: [
          {
            type: 'sse',
            url: 'https://a.example',
            headers: [{ name: 'A' }, { name: 'bad name', value: 'x' }],
          },
        ],
      }),
    ],
  ])('a wrong name is refused with its place, %s', async (place, file) => {
    const { code, stderr, isChanged } = await given(file);
    expect([code, isChanged]).toEqual([1, false]);
    expect(stderr).toMatch(/is not the name of|has control characters/);
    if (!stderr.includes('control characters')) expect(stderr).toContain(`\`${place}\``);
  });

  test.each([
    'HTTPS_PROXY',
    'no_proxy',
    'NODE_TLS_REJECT_UNAUTHORIZED',
    'NODE_EXTRA_CA_CERTS',
    'SSL_CERT_FILE',
    'XDG_CONFIG_HOME',
  ])('the file cannot set %s, which decides from where a package comes', async (name) => {
    const { code, stderr } = await given(inPackage({ environmentVariables: [{ name, value: 'x' }] }));
    expect([code, stderr]).toEqual([1, expect.stringContaining(`it sets \`${name}\``)]);
    // Called a secret, its value is copied to gateway.env.
    for (const member of ['value', 'default']) {
      const secret = { name, [member]: 'x', isSecret: true };
      const other = await given(inPackage({ environmentVariables: [secret] }));
      expect([other.code, other.stderr]).toEqual([1, expect.stringContaining(`it sets \`${name}\``)]);
    }
    const around = { name, value: 'x:{own}', variables: { own: { isRequired: true } } };
    expect((await given(inPackage({ environmentVariables: [around] }))).stderr).toContain(
      `it sets \`${name}\``,
    );
    expect((await given(inPackage({ environmentVariables: [{ name, isRequired: true }] }))).code).toBe(0);
  });

  test('lists over the limit are refused, and a server after many is left out', async () => {
    const many = Array.from({ length: LIMITS.serverJsonItems + 1 }, (_, index) => ({ name: `A${index}` }));
    expect((await given(inPackage({ environmentVariables: many }))).stderr).toContain(
      'has more than 200 items',
    );
    const variables = Object.fromEntries(many.map(({ name }) => [name, { value: '1' }]));
    expect((await given(inPackage({ packageArguments: [{ value: '{A0}{A200}', variables }] }))).code).toBe(0);
  });
});

test('a name that is taken gets the number 2, then 3', () => {
  const own = new Variables({});
  const fresh = (): string => own.fresh('FS_TOKEN', 'fs', 'x', { value: undefined });
  expect([fresh(), fresh(), fresh()]).toEqual(['FS_TOKEN', 'FS_TOKEN_2', 'FS_TOKEN_3']);
  const copied = ['a', 'b', 'c', 'd'].map((value) => new Set([own.reference('TOKEN', value, 'hub', 'x')]));
  expect(copied.flatMap((each) => [...each])).toEqual([
    '${HUB_TOKEN}',
    '${HUB_TOKEN_2}',
    '${HUB_TOKEN_3}',
    '${HUB_TOKEN_4}',
  ]);
});
