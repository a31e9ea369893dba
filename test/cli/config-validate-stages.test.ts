import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway } from '../kit/gateway.ts';
import { send } from '../kit/send.ts';

const { path: folder, remove } = await temporaryFolder();
afterAll(remove);

/** One mistake of each stage: reading, checking and compiling. None of them may cause further problems. */
const MIXED = `config:
  sesion: {}
gateways:
  default:
    port: $PORT
    routes:
      - policies:
          authorization:
            rules: ['reqest.path == "/"', '$RULE', 5]
          directResponse: { status: 200 }
      - hostnames: [a.example.com]
        policies:
          directResponse: { status: many, bodyExpression: '1 +' }
        matches: [{ path: { regex: '(' } }]
`;
const FOUND = [
  '2:3: error AGW0101 unknown field `sesion`',
  '5:11: error AGW0004 the environment variable `PORT` is not defined',
  '9:22: error AGW0202 unknown variable `reqest`',
  '9:44: error AGW0004 the environment variable `RULE` is not defined',
  '9:52: error AGW0102 expected a string or a mapping, found a number',
  '13:37: error AGW0102 expected a whole number, found a string',
  '13:63: error AGW0201 the expression ends too early',
  '14:36: error AGW0104 invalid regular expression',
];

/** The lines of `-o concise` for a file of that text, without its name. */
async function problems(yaml: string, env: Readonly<Record<string, string>> = {}): Promise<string[]> {
  const file = join(folder, 'one.yaml');
  writeFileSync(file, yaml);
  const { code, stdout, stderr } = await cli(['config', 'validate', '-o', 'concise', file], { env });
  const lines = stdout.split('\n').filter((line) => line !== '');
  expect([stderr, code]).toEqual(['', lines.some((line) => line.includes(': error ')) ? 1 : 0]);
  return lines.map((line) => line.replace(`${file}:`, ''));
}

describe('problems of all validation stages', () => {
  test('config validate reports the problems of all stages in one run in the order of the file', async () => {
    expect(await problems(MIXED)).toEqual(FOUND);
  });

  test('agctl serve reports the problems of all stages at startup', async () => {
    writeFileSync(join(folder, 'serve.yaml'), MIXED);
    const { code, stderr } = await cli(['serve', '-f', 'serve.yaml'], { cwd: folder });
    expect(code).toBe(1);
    const places = [...stderr.matchAll(/┌─ serve\.yaml:(\d+:\d+)/g)].map(([, place]) => place);
    expect(places).toEqual(FOUND.map((line) => /^\d+:\d+/.exec(line)?.[0]));
  });

  test('the admin API reports the problems of all stages', async () => {
    await using running = await gateway('gateways: { a: { port: 0, routes: [] } }', { admin: true });
    const reply = await send(`${running.admin}/api/config/validate`, { method: 'POST', body: MIXED });
    const { diagnostics } = JSON.parse(reply.text);
    const shown = diagnostics.map(
      ({ range: { start }, severity, code, message }: Found) =>
        `${start.line}:${start.column}: ${severity} ${code} ${message}`,
    );
    expect(shown).toEqual(FOUND);
  });
});

interface Found {
  readonly range: { readonly start: { readonly line: number; readonly column: number } };
  readonly severity: string;
  readonly code: string;
  readonly message: string;
}

const route = (fields: string): string =>
  `gateways:\n  a:\n    port: 0\n    routes:\n      - ${fields.replaceAll('\n', '\n        ')}\n`;
const HOST = 'backends: [{ host: "127.0.0.1:1" }]';

describe('cascading errors', () => {
  test.each([
    ['a policy', route(`policies: { mcpAuthn: {}, authorization: { rules: ['jwt.sub == ""'] } }\n${HOST}`)],
    ['the list of backends', route(`name: x\nbackend: [{ host: "127.0.0.1:1" }]`)],
    ['the kind of a backend', route(`backends: [{ hots: "127.0.0.1:1" }]`)],
    ['the kind of a target', route(`backends: [{ mcp: { targets: [{ name: a, stdoi: { cmd: x } }] } }]`)],
    ['a condition', `${route(`matches: [{ path: { prefix: /a } }]\n${HOST}`)}      - ${HOST}\n`],
    ['a port', `gateways: { a: { prot: 1 }, b: { port: 0, routes: [{ ${HOST} }] } }`],
    ['the gateways', `gatways: { a: { port: 1 } }\nroutes: [{ gateways: a, ${HOST} }]`],
    [
      'the address of a server',
      `config: { statsAdr: off }\n${route(HOST).replace('port: 0', 'port: 15020')}`,
    ],
  ])('a misspelled name of %s gives one problem', async (_, yaml) => {
    expect(await problems(yaml)).toEqual([expect.stringContaining('AGW0101 unknown field')]);
  });

  test.each([
    ['a port', `gateways: { a: { port: $NOT_SET, routes: [{ ${HOST} }] } }`],
    [
      'a gateway',
      `gateways: { a: { port: 0, routes: [{ ${HOST} }] } }\nroutes: [{ gateways: $NOT_SET, ${HOST} }]`,
    ],
    [
      'an expression',
      route(`policies: { authorization: { rules: ['request.path == "\${NOT_SET}'] } }\n${HOST}`),
    ],
    ['a regular expression', route(`matches: [{ path: { regex: "(\${NOT_SET}" } }]\n${HOST}`)],
    [
      'a file',
      route(
        `policies: { mcpAuthentication: { issuer: https://a.example.com, audiences: [a], jwks: { file: $NOT_SET }, resourceMetadata: { resource: https://b.example.com } } }\n${HOST}`,
      ),
    ],
    ['an address', route(`backends: [{ host: $NOT_SET }]`)],
    ['a route', `gateways: { a: { port: 0, routes: [$NOT_SET, { ${HOST} }] } }`],
    ['a secret', `llm: { models: [{ name: a, provider: openAI, params: { apiKey: "sk-\${NOT_SET}" } }] }`],
  ])('a missing variable in place of %s gives one problem', async (_, yaml) => {
    expect(await problems(yaml)).toEqual([expect.stringContaining('AGW0004 the environment variable')]);
  });

  test('a value from a variable that is set is validated with its position in the file', async () => {
    const yaml = route(`policies: { authorization: { rules: ['request.path == "\${SET}'] } }\n${HOST}`);
    expect(await problems(yaml, { SET: 'x' })).toEqual([expect.stringContaining('AGW0201')]);
  });
});

describe('positions after an invalid entry', () => {
  test('positions of problems after an invalid entry are those of the file', async () => {
    const yaml = route(
      `policies: { authorization: { rules: [[], 'nosuch', 'x.y'] } }\nbackends: [{ mcp: { targets: [7, { name: a }, { name: a, stdio: { cmd: x } }] } }]`,
    );
    const file = join(folder, 'two.yaml');
    writeFileSync(file, yaml);
    const { stdout } = await cli(['config', 'validate', '-o', 'json', file]);
    const found = JSON.parse(stdout).diagnostics.map(
      ({ code, path }: { code: string; path: string }) =>
        `${code} ${path.replace('/gateways/a/routes/0/', '')}`,
    );
    expect(found).toEqual([
      'AGW0102 policies/authorization/rules/0',
      'AGW0202 policies/authorization/rules/1',
      'AGW0202 policies/authorization/rules/2',
      'AGW0102 backends/0/mcp/targets/0',
      'AGW0105 backends/0/mcp/targets/1',
      'AGW0106 backends/0/mcp/targets/2/name',
    ]);
  });
});

test('a route of an unknown gateway is validated', async () => {
  const yaml = `gateways: { a: { port: 0, routes: [{ ${HOST} }] } }
routes:
  - { gateways: b, policies: { authorization: { rules: [nosuch] } }, ${HOST} }
mcp: { port: 0, gateways: a, targets: [{ name: x }] }
`;
  expect(await problems(yaml)).toEqual([
    '3:17: error AGW0107 unknown gateway `b`',
    expect.stringContaining('AGW0202 unknown variable `nosuch`'),
    expect.stringContaining('AGW0105 `mcp.gateways` cannot be used with `mcp.port`'),
    expect.stringContaining('AGW0105 target `x` has no kind'),
  ]);
});

test('a file with a problem in each of its many lines is reported within bounds', async () => {
  const rules = Array.from({ length: 3000 }, (_, index) => `'nosuch${index}', ${index}`).join(', ');
  const found = await problems(route(`policies: { authorization: { rules: [${rules}] } }\n${HOST}`));
  expect(found).toHaveLength(200);
});
