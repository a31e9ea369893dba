import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { cli } from '../../../kit/cli.ts';
import { blocksIn } from '../../../kit/documentation.ts';
import { temporaryFolder } from '../../../kit/folder.ts';
import { agctl, service } from '../../../kit/process.ts';
import { until } from '../../../kit/until.ts';

// Policies in files, which Node.js loads as it loads any other: in the program that is built.

const configOf = (modules: readonly object[], config: object = {}): string =>
  JSON.stringify({
    config,
    gateways: {
      default: {
        port: 0,
        address: '127.0.0.1',
        routes: [{ policies: { modules, directResponse: { status: 200, body: 'answered' } } }],
      },
    },
  });

const TEAM = `
import { definePolicy } from '@agctl/agctl/policy';
import { denied } from './rules.ts';

interface Options { readonly team: string }

export default definePolicy({
  name: 'team',
  options: {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: (value: unknown) => ({ value: value as Options }),
    },
  },
  request(request, { deny, options }): void {
    if (request.path === denied) deny(\`not for \${options.team}\`);
  },
});
`;

async function policyFolder(rules = 'export const denied: string = "/a";') {
  const folder = await temporaryFolder();
  const write = (name: string, text: string): void => writeFileSync(join(folder.path, name), text);
  write('team.ts', TEAM);
  write('rules.ts', rules);
  return { ...folder, write, [Symbol.asyncDispose]: folder[Symbol.asyncDispose] };
}

const entry = { module: './team.ts', options: { team: 'reds' } };

describe('policies in files', () => {
  test('a policy in TypeScript is loaded from beside the configuration, where the package is not installed', async () => {
    await using folder = await policyFolder();
    folder.write('gateway.yaml', configOf([entry]));
    await using gateway = await service(['serve', '-f', join(folder.path, 'gateway.yaml')]);
    const denied = await fetch(new URL('/a', gateway.url));
    expect([denied.status, await denied.text()]).toEqual([403, 'not for reds']);
    expect(await (await fetch(new URL('/b', gateway.url))).text()).toBe('answered');
    expect(gateway.stderr).not.toMatch(/warning|experimental/i);
  });

  test.each([1, 2])(
    'a change of a file that a policy imports takes effect, with %i workers',
    async (workers) => {
      await using folder = await policyFolder();
      folder.write('gateway.yaml', configOf([entry], { workers }));
      await using gateway = await service(['serve', '-f', join(folder.path, 'gateway.yaml')]);
      const status = async (path: string): Promise<number> =>
        (await fetch(new URL(path, gateway.url))).status;
      expect([await status('/a'), await status('/b')]).toEqual([403, 200]);
      folder.write('rules.ts', 'export const denied: string = "/b";');
      await until(async () => (await status('/b')) === 403);
      expect(await status('/a')).toBe(200);
      // A mistake leaves the policy as it is, until it is corrected.
      folder.write('rules.ts', 'export const denied string = "/c";');
      await until(() => gateway.stderr.includes('AGW0404'));
      expect(gateway.stderr).toMatch(/the policy cannot be used: .*\(\/\S+\/rules\.ts:1\)/);
      expect(await status('/b')).toBe(403);
      folder.write('rules.ts', 'export const denied: string = "/c";');
      await until(async () => (await status('/c')) === 403);
    },
  );

  test.each([
    ['a file that does not exist', { module: './none.ts' }, /AGW0107.*file not found: \S+\/none\.ts/],
    ['neither file nor name', {}, /expected either `module` or `policy`/],
    ['both file and name', { module: './plain.ts', policy: 'a' }, /expected either `module` or `policy`/],
    ['a name, as no program gives it one', { policy: 'a' }, /AGW0107.*the program gives no policy `a`/],
    ['a time limit of nothing', { module: './plain.ts', timeout: '0s' }, /AGW0104.*above zero/],
  ])('serve refuses %s before it loads a file, with its place', async (_what, given, problem) => {
    await using folder = await policyFolder();
    folder.write('plain.ts', 'export default { name: "plain", request() {} };');
    folder.write('gateway.yaml', configOf([given]));
    const { code, stderr } = await cli(['serve', '-f', join(folder.path, 'gateway.yaml')]);
    expect(code).toBe(1);
    expect(stderr.replaceAll(/\s+/g, ' ')).toMatch(problem);
    expect(stderr).toMatch(/gateway\.yaml:1:\d+/);
  });

  test('serve names each policy that cannot be loaded, and why, with its place', async () => {
    await using folder = await policyFolder();
    folder.write('lacks.ts', "import './gone.ts';");
    folder.write('enum.ts', 'enum Team { Reds }');
    folder.write('throws.ts', '// a comment\nthrow new Error("not today");');
    folder.write('plain.ts', 'export default { name: "plain", request() {} };');
    const problems = [
      // A file that imports one that does not exist.
      [{ module: './lacks.ts' }, /AGW0404.*Cannot find module '\S+\/gone\.ts'/],
      // Syntax that types cannot be removed from.
      [{ module: './enum.ts' }, /AGW0404.*enum is not supported in strip-only mode \(\S+\/enum\.ts:1\)/],
      [{ module: './throws.ts' }, /AGW0404.*not today \(\S+\/throws\.ts:2:7\)/],
      [{ module: './rules.ts' }, /AGW0404.*expected a policy as the default export.*found none/],
      [{ module: './plain.ts', options: { team: 'reds' } }, /AGW0104.*takes no options/],
    ] as const;
    folder.write('gateway.yaml', configOf(problems.map(([given]) => given)));
    const { code, stderr } = await agctl(['serve', '-f', join(folder.path, 'gateway.yaml')]);
    expect(code).toBe(1);
    for (const [, problem] of problems) expect(stderr.replaceAll(/\s+/g, ' ')).toMatch(problem);
    expect(stderr.match(/gateway\.yaml:1:\d+/g)).toHaveLength(problems.length);
  });

  test('config validate runs no code of a policy, and says that its file is missing', async () => {
    await using folder = await policyFolder();
    folder.write(
      'writes.ts',
      `import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'; writeFileSync(${JSON.stringify(join(folder.path, 'ran'))}, '');`,
    );
    folder.write('gateway.yaml', configOf([{ module: './writes.ts' }, { module: './none.ts' }]));
    const { code, stderr } = await cli(['config', 'validate', join(folder.path, 'gateway.yaml')]);
    expect([code, existsSync(join(folder.path, 'ran'))]).toEqual([1, false]);
    expect(stderr).toContain('file not found');
  });

  test('the files of docs/policies.md do what it says', async () => {
    await using folder = await temporaryFolder();
    const blocks = blocksIn('docs/policies.md');
    const [config = '', team = '', withOptions = ''] = ['yaml', 'ts', 'ts'].map(
      (language, at) => blocks.filter((block) => block.language === language)[Math.max(0, at - 1)]?.text,
    );
    mkdirSync(join(folder.path, 'policies'));
    mkdirSync(join(folder.path, 'node_modules'));
    symlinkSync(
      new URL('../../../../node_modules/zod', import.meta.url),
      join(folder.path, 'node_modules/zod'),
    );
    const write = (name: string, text: string): void => writeFileSync(join(folder.path, name), text);
    const free = config.replace('port: 3000', 'port: 0');
    write('gateway.yaml', free);
    write('policies/team.ts', team);
    await using gateway = await service(['serve', '-f', join(folder.path, 'gateway.yaml')]);
    const ask = async (headers: Record<string, string>): Promise<unknown[]> => {
      const response = await fetch(new URL('/v1/models', gateway.url), { headers });
      return [response.status, await response.text()];
    };
    expect(await ask({ 'x-team': 'greens' })).toEqual([200, expect.any(String)]);
    expect(await ask({})).toEqual([401, expect.stringContaining('say which team you are of')]);
    write('policies/team.ts', withOptions);
    await until(() =>
      gateway.stderr.includes('options.teams: Invalid input: expected array, received undefined'),
    );
    const options = 'options: { teams: [reds, blues] }';
    write('gateway.yaml', free.replace('timeout: 500ms', options));
    await until(async () => (await ask({ 'x-team': 'greens' }))[0] === 401);
    expect(await ask({ 'x-team': 'reds' })).toEqual([200, expect.any(String)]);
  });

  test('check loads policies with --start, and says what is wrong with them', async () => {
    await using folder = await policyFolder();
    folder.write('broken.ts', 'export default { name: "broken" };');
    folder.write('good.yaml', configOf([entry]));
    folder.write('bad.yaml', configOf([entry, { module: './broken.ts' }]));
    const checked = async (file: string, ...args: string[]): Promise<unknown[]> => {
      const named = ['-f', join(folder.path, file), '--only', 'policies', '--output', 'json'];
      const { code, stdout } = await agctl(['check', ...named, ...args]);
      return [
        code,
        JSON.parse(stdout).checks.map(({ status, message }: Record<string, string>) => [status, message]),
      ];
    };
    expect(await checked('good.yaml')).toEqual([0, [['skip', expect.stringContaining('--start')]]]);
    expect(await checked('good.yaml', '--start')).toEqual([0, [['ok', 'loaded']]]);
    expect(await checked('bad.yaml', '--start')).toEqual([
      1,
      [
        [
          'fail',
          expect.stringMatching(/modules\[1\]\.module: the policy cannot be used: .*none of the functions/),
        ],
      ],
    ]);
  });

  test('a mistake that nobody waits for is logged, and stops nothing', async () => {
    await using folder = await policyFolder();
    folder.write(
      'late.ts',
      `Promise.reject(new Error('while it is loaded'));
      export default {
        name: 'late',
        request({ path }, { deny, signal }) {
          if (path === '/promise') (async () => { await 1; deny('too late'); })();
          if (path === '/timer') setTimeout(() => { throw new Error('in a timer'); });
          if (path === '/fetch') fetch('http://127.0.0.1:1/');
          if (path !== '/listener') return;
          signal.addEventListener('abort', () => { throw new Error('in a listener'); });
          return new Promise(() => {});
        },
      };`,
    );
    folder.write('gateway.yaml', configOf([{ module: './late.ts', timeout: '50ms' }]));
    await using gateway = await service(['serve', '-f', join(folder.path, 'gateway.yaml')]);
    const status = async (path: string): Promise<number> => (await fetch(new URL(path, gateway.url))).status;
    for (const path of ['/promise', '/timer', '/fetch']) expect(await status(path)).toBe(200);
    expect(await status('/listener')).toBe(500);
    for (const problem of [
      'while it is loaded',
      'too late',
      'in a timer',
      'fetch failed',
      'in a listener',
      'longer than 50ms',
    ])
      await until(() => gateway.stderr.includes(problem));
    expect(await status('/')).toBe(200);
    expect(gateway.stderr).not.toContain('internal error');
  });

  test.each(['the file', 'a folder on the way', 'a file that it imports'])(
    'a link that leads elsewhere takes effect: %s',
    async (what) => {
      await using folder = await policyFolder();
      for (const version of ['v1', 'v2']) {
        mkdirSync(join(folder.path, version));
        folder.write(`${version}/rules.ts`, `export const denied: string = '/${version}';`);
        folder.write(`${version}/team.ts`, TEAM);
      }
      const link = (to: string, name: string): void => {
        symlinkSync(to, join(folder.path, `${name}.new`));
        renameSync(join(folder.path, `${name}.new`), join(folder.path, name));
      };
      rmSync(join(folder.path, 'rules.ts'));
      const [name, target] =
        what === 'the file'
          ? ['linked.ts', '/team.ts']
          : what === 'a folder on the way'
            ? ['now', '']
            : ['rules.ts', '/rules.ts'];
      const module =
        what === 'the file' ? './linked.ts' : what === 'a folder on the way' ? './now/team.ts' : './team.ts';
      link(`v1${target}`, name);
      folder.write('gateway.yaml', configOf([{ ...entry, module }]));
      await using gateway = await service(['serve', '-f', join(folder.path, 'gateway.yaml')]);
      const status = async (path: string): Promise<number> =>
        (await fetch(new URL(path, gateway.url))).status;
      expect([await status('/v1'), await status('/v2')]).toEqual([403, 200]);
      link(`v2${target}`, name);
      await until(async () => (await status('/v2')) === 403);
      expect(await status('/v1')).toBe(200);
    },
  );

  test('files of CommonJS are loaded again too, with what they require', async () => {
    await using folder = await policyFolder();
    const rules = (denied: string): void => folder.write('rules.cjs', `exports.denied = '${denied}';`);
    folder.write(
      'old.cjs',
      `const { denied } = require('./rules.cjs');
      module.exports = { name: 'old', request({ path }, { deny }) { if (path === denied) deny('no'); } };`,
    );
    folder.write(
      'new.ts',
      "import rules from './rules.cjs'; export default { name: 'new', response(r) { r.headers.set('x-denied', rules.denied); } };",
    );
    rules('/a');
    folder.write('gateway.yaml', configOf([{ module: './old.cjs' }, { module: './new.ts' }]));
    await using gateway = await service(['serve', '-f', join(folder.path, 'gateway.yaml')]);
    const status = async (path: string): Promise<number> => (await fetch(new URL(path, gateway.url))).status;
    expect([await status('/a'), await status('/b')]).toEqual([403, 200]);
    rules('/b');
    await until(async () => (await status('/b')) === 403);
    expect(await status('/a')).toBe(200);
  });

  test('a policy in TypeScript is loaded from a folder whose package.json says that its files are CommonJS', async () => {
    await using folder = await policyFolder();
    folder.write('package.json', '{ "type": "commonjs" }');
    folder.write('gateway.yaml', configOf([entry]));
    await using gateway = await service(['serve', '-f', join(folder.path, 'gateway.yaml')]);
    expect((await fetch(new URL('/a', gateway.url))).status).toBe(403);
  });
});
