import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cli, type Ran } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import type { Json } from '../kit/mcp.ts';
import { agctl } from '../kit/process.ts';

const { path: folder, remove } = await temporaryFolder();
afterAll(remove);

const GOOD = `# yaml-language-server: $schema=config.schema.json
gateways:
  default:
    port: 0
    address: 127.0.0.1
    routes:
      - backends:
          - mcp: { targets: [{ name: a, stdio: { cmd: server } }] }
`;
const WARNING = 'gateways:\n  idle: { port: 3000 }\n';
const BAD = `gateways:
  default:
    port: many
    routess: []
config:
  session: { key: not-a-key-but-secret }
`;

beforeAll(() => {
  for (const [name, text] of Object.entries({
    good: GOOD,
    warning: WARNING,
    bad: BAD,
    empty: '',
    broken: 'a: [',
  }))
    writeFileSync(join(folder, `${name}.yaml`), text);
});

const validate = (args: string[], input?: string): Promise<Ran> =>
  cli(['config', 'validate', ...args], { cwd: folder, ...(input !== undefined && { input }) });

describe('config validate as text', () => {
  test('config validate prints one line on stderr for a valid file', async () => {
    const { code, stdout, stderr } = await agctl(['config', 'validate', '-f', 'good.yaml'], { cwd: folder });
    expect([code, stdout]).toEqual([0, '']);
    expect(stderr).toMatch(/^good\.yaml: valid \(1 port\) in \d+ ms\n$/);
  });

  test('config validate prints every problem with its position and hides secrets', async () => {
    const { code, stdout, stderr } = await validate(['bad.yaml']);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain('error[AGW0102]: expected a whole number, found a string\n  ┌─ bad.yaml:3:11\n');
    expect(stderr).toContain('error[AGW0101]: unknown field `routess`\n  ┌─ bad.yaml:4:5\n');
    expect(stderr).toContain('expected 64 hexadecimal digits');
    expect(stderr).toContain('bad.yaml: 3 errors\n');
    expect(stderr).not.toContain('not-a-key');
    expect(stderr).not.toContain('\u001b');
  });

  test('config validate warns about literal secrets in the arguments and variables of a stdio server', async () => {
    const stdio = `{
      cmd: server,
      args: ["--token", "sk-1", "--api-key=sk-2", "postgres://u:sk-3@db/x", "--token=$T", "--token", "$T",
        "--token", "--verbose", "--token-file", "/run/t", "https://host/x?y=1"],
      env: { DB_PASSWORD: sk-4, REDIS_URL: "redis://:sk-5@cache", TOKEN: $T, API_KEY_FILE: /run/k, LEVEL: debug },
    }`;
    const yaml = GOOD.replace('{ cmd: server }', () => stdio.replaceAll(/\n\s+/g, ' '));
    writeFileSync(join(folder, 'secrets.yaml'), yaml);
    const env = { T: 'from-the-environment' };
    const [text, json] = await Promise.all([
      cli(['config', 'validate', '-f', 'secrets.yaml'], { cwd: folder, env }),
      cli(['config', 'validate', '-f', 'secrets.yaml', '-o', 'json'], { cwd: folder, env }),
    ]);
    expect([text.code, json.code]).toEqual([0, 0]);
    const { diagnostics } = JSON.parse(json.stdout);
    const found = diagnostics.map(({ code, path }: Json) => `${code} ${path.split('/stdio/')[1]}`);
    expect(found.toSorted()).toEqual([
      'AGW0302 args/1',
      'AGW0302 args/2',
      'AGW0302 args/3',
      'AGW0302 env/DB_PASSWORD',
      'AGW0302 env/REDIS_URL',
    ]);
    expect(text.stderr).toContain('["--token", ****, ****, ****, "--token=$T"');
    expect(text.stderr + text.stdout + json.stdout).not.toMatch(/sk-\d/);
  });

  test('config validate warns about the literal key of a model, and not about what stands for no key', async () => {
    const models = ['of-ann-1234', 'none', 'EMPTY', 'ollama'].map((apiKey, index) => ({
      ...{ name: `m${index}`, provider: 'ollama', params: { model: 'x', apiKey } },
    }));
    writeFileSync(join(folder, 'keys.yaml'), JSON.stringify({ llm: { port: 0, models } }));
    const { stdout } = await cli(['config', 'validate', '-f', 'keys.yaml', '-o', 'json'], { cwd: folder });
    const found = JSON.parse(stdout).diagnostics.filter(({ code }: Json) => code === 'AGW0302');
    expect(found.map(({ path }: Json) => path)).toEqual(['/llm/models/0/params/apiKey']);
  });

  test('config validate counts warnings, which fail only with --strict', async () => {
    const lax = await validate(['warning.yaml']);
    expect(lax.code).toBe(0);
    expect(lax.stderr).toContain('warning[AGW0303]: port 3000 is not used: gateway `idle` has no routes');
    expect(lax.stderr).toMatch(/warning\.yaml: valid, 1 warning \(1 port\) in \d+ ms\n$/);
    const strict = await validate(['--strict', 'warning.yaml', 'bad.yaml', 'good.yaml']);
    expect(strict.code).toBe(1);
    expect(strict.stderr).toContain('warning[AGW0303]');
    expect(strict.stderr).toMatch(
      /\nwarning\.yaml: 1 warning, but --strict allows none\nbad\.yaml: 3 errors\ngood\.yaml: valid .*\n$/,
    );
  });

  test('config validate continues after a file with errors', async () => {
    const { code, stderr } = await validate(['bad.yaml', 'good.yaml', 'broken.yaml']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/bad\.yaml: 3 errors\ngood\.yaml: valid .*\nbroken\.yaml: 1 error\n$/);
  });

  test('config validate continues after an unreadable file', async () => {
    const { code, stdout, stderr } = await validate(['bad.yaml', 'missing.yaml', '.', 'good.yaml']);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('error[AGW0101]: unknown field `routess`\n  ┌─ bad.yaml:4:5\n');
    expect(stderr).toContain('error[AGW0005]: no such file: missing.yaml\n  ┌─ missing.yaml:1:1\n');
    expect(stderr).toContain('. is a directory');
    expect(stderr).toMatch(
      /bad\.yaml: 3 errors\nmissing\.yaml: cannot be read\n\.: cannot be read\ngood\.yaml: valid .*\n$/,
    );
  });

  test.each([
    [['--color', 'always'], {}, true],
    [['--color', 'always'], { NO_COLOR: '1' }, true],
    [[], {}, false],
    [['--no-color'], {}, false],
  ])('config validate with %j and %j has color: %s', async (args, env, isColored) => {
    const { stderr } = await cli([...args, 'config', 'validate', 'bad.yaml'], { cwd: folder, env });
    expect(stderr.includes('\u001b[')).toBe(isColored);
  });
});

test('config validate hides the password in a URL', async () => {
  const text = 'mcp:\n  targets: [{ name: a, mcp: { host: "https://user:hunter2@example.com/mcp" } }]\n';
  const { code, stderr } = await validate(['-f', '-'], text);
  expect(code).toBe(1);
  expect(stderr).toContain('credentials in a URL are not supported');
  expect(stderr).not.toContain('hunter2');
});

describe('config validate output formats', () => {
  test('config validate -o concise prints a line per problem', async () => {
    const { code, stdout, stderr } = await validate([
      '-o',
      'concise',
      'bad.yaml',
      'warning.yaml',
      'good.yaml',
    ]);
    expect([code, stderr]).toEqual([1, '']);
    expect(stdout.split('\n')).toEqual([
      'bad.yaml:3:11: error AGW0102 expected a whole number, found a string',
      'bad.yaml:4:5: error AGW0101 unknown field `routess`',
      'bad.yaml:6:19: error AGW0104 expected 64 hexadecimal digits',
      'warning.yaml:2:17: warning AGW0303 port 3000 is not used: gateway `idle` has no routes',
      '',
    ]);
  });

  test('config validate -o github prints a workflow command per problem', async () => {
    const { code, stdout } = await validate(['-o', 'github', 'bad.yaml']);
    expect(code).toBe(1);
    expect(stdout.split('\n')[0]).toBe(
      '::error file=bad.yaml,line=3,endLine=3,col=11,endColumn=15,title=AGW0102::expected a whole number, found a string%0Awrite a number, such as `port: 3000`',
    );
  });

  test('config validate -o github prints warnings as errors with --strict', async () => {
    const lax = await validate(['-o', 'github', 'warning.yaml']);
    expect([lax.code, lax.stdout.split(' ')[0]]).toEqual([0, '::warning']);
    const strict = await validate(['-o', 'github', '--strict', 'warning.yaml']);
    expect([strict.code, strict.stdout.split(' ')[0]]).toEqual([1, '::error']);
    expect(strict.stdout.replace('::error', '::warning')).toBe(lax.stdout);
  });

  test('config validate -o json prints the same with and without --strict', async () => {
    const { code, stdout } = await validate(['-o', 'json', '--strict', 'warning.yaml']);
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ valid: true, errorCount: 0, warningCount: 1 });
  });

  test('config validate -o json prints one document even without problems', async () => {
    const good = await validate(['-o', 'json', 'good.yaml']);
    expect([good.code, good.stderr]).toEqual([0, '']);
    expect(JSON.parse(good.stdout)).toMatchObject({ formatVersion: '1.1', valid: true, diagnostics: [] });
    const bad = await validate(['-o', 'json', 'bad.yaml']);
    expect(bad.code).toBe(1);
    const { valid, errorCount, diagnostics } = JSON.parse(bad.stdout);
    expect([valid, errorCount]).toEqual([false, 3]);
    expect(diagnostics[0]).toMatchObject({
      severity: 'error',
      code: 'AGW0102',
      path: '/gateways/default/port',
      range: { file: 'bad.yaml', start: { line: 3, column: 11 } },
    });
    expect(bad.stdout).not.toContain('not-a-key');
  });

  test('config validate reports an unreadable file as a problem among those of other files', async () => {
    const { code, stdout, stderr } = await validate([
      '-o',
      'json',
      'warning.yaml',
      'missing.yaml',
      'good.yaml',
    ]);
    expect([code, stderr]).toEqual([2, '']);
    const { valid, errorCount, warningCount, diagnostics } = JSON.parse(stdout);
    expect([valid, errorCount, warningCount]).toEqual([false, 1, 1]);
    expect(diagnostics).toMatchObject([
      { severity: 'warning', code: 'AGW0303', range: { file: 'warning.yaml' } },
      {
        severity: 'error',
        code: 'AGW0005',
        message: 'no such file: missing.yaml',
        range: { file: 'missing.yaml' },
      },
    ]);
    const concise = await validate(['-o', 'concise', 'missing.yaml', 'broken.yaml']);
    expect(concise.code).toBe(2);
    expect(concise.stdout).toMatch(
      /^missing\.yaml:1:1: error AGW0005 .*\nbroken\.yaml:\d+:\d+: error AGW0001 /,
    );
  });

  test('config validate -o sarif prints one log even without problems', async () => {
    const good = await validate(['-o', 'sarif', 'good.yaml']);
    expect(JSON.parse(good.stdout)).toMatchObject({ version: '2.1.0', runs: [{ results: [] }] });
    const { runs } = JSON.parse((await validate(['-o', 'sarif', 'bad.yaml'])).stdout);
    expect(runs[0].results.map(({ ruleId }: { ruleId: string }) => ruleId)).toEqual([
      'AGW0102',
      'AGW0101',
      'AGW0104',
    ]);
  });

  test('config validate prints nothing for valid files in line-based formats', async () => {
    for (const format of ['concise', 'github']) {
      expect(await validate(['-o', format, 'good.yaml'])).toMatchObject({ code: 0, stdout: '', stderr: '' });
    }
  });
});

describe('config validate input', () => {
  test('config validate reads stdin with -', async () => {
    const args = ['config', 'validate', '-o', 'concise', '-f', '-'];
    const { code, stdout } = await cli(args, { input: BAD });
    expect(code).toBe(1);
    expect(stdout).toMatch(/^-:3:11: error AGW0102 /);
  });

  test('config validate of a file that is not YAML is exit code 1 with the position', async () => {
    const { code, stdout } = await validate(['-o', 'concise', 'broken.yaml']);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^broken\.yaml:\d+:\d+: error AGW0001 /);
  });

  test('config validate opens no port, starts no process and reads no other file', async () => {
    const text = GOOD.replace('cmd: server', 'cmd: /no/such/command').replace('port: 0', 'port: 1');
    expect((await validate(['-f', '-'], text)).code).toBe(0);
  });
});

test('config validate prints notes, which neither count as warnings nor fail with --strict', async () => {
  const rules = `['request.method == "GET"', 'request.path != "/x"']`;
  const routes = `[{ policies: { authorization: { rules: ${rules} }, directResponse: {} } }]`;
  writeFileSync(join(folder, 'noted.yaml'), `gateways: { default: { port: 0, routes: ${routes} } }\n`);
  const { code, stderr } = await validate(['--strict', 'noted.yaml']);
  expect([code, stderr]).toEqual([
    0,
    expect.stringContaining('note[AGW0308]: all of these 2 rules must be true'),
  ]);
  expect(stderr).toContain('noted.yaml: valid (1 port)');
  const github = await validate(['--strict', '-o', 'github', 'noted.yaml']);
  expect([github.code, github.stdout]).toEqual([0, expect.stringMatching(/^::notice file=noted\.yaml,/)]);
  const { warningCount, valid } = JSON.parse((await validate(['-o', 'json', 'noted.yaml'])).stdout);
  expect({ warningCount, valid }).toEqual({ warningCount: 0, valid: true });
});
