import { execFile } from 'node:child_process';
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { createProgram } from '../src/cli/program.ts';
import type { BackendPlan } from '../src/server/config/plan/plan.ts';
import { anyBackendKinds, policyKinds } from '../src/server/features.ts';
import { formats } from '../src/server/llm/formats/index.ts';
import { temporaryFolder } from './kit/folder.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const run = promisify(execFile);
const read = (path: string) => readFileSync(join(root, path), 'utf8');

describe('the files of policies', () => {
  const folder = 'src/server/policies';
  const files = readdirSync(join(root, folder));
  const definitions = globSync('src/server/**/*.ts', { cwd: root }).filter((path) =>
    read(path).includes('= definePolicy('),
  );

  test('every defined policy is in the list of policies', async () => {
    const kinds = (await Promise.all(definitions.map(kindsOf))).flat();
    const registered = new Set<unknown>(policyKinds);
    expect(kinds.filter((kind) => !registered.has(kind))).toEqual([]);
    expect(kinds).toHaveLength(policyKinds.length);
  });

  test('every policy has a unique key', () => {
    const keys = policyKinds.map(({ key }) => key);
    expect(keys).toEqual([...new Set(keys)]);
  });

  test('every other file in the folder of policies is used by a policy', () => {
    const imported = globSync(`${folder}/**/*.ts`, { cwd: root }).flatMap((path) => importsOf(read(path)));
    for (const name of files) {
      const entry = name.endsWith('.ts') ? name : `${name}/index.ts`;
      if (definitions.includes(`${folder}/${entry}`)) continue;
      // A folder that policies share has no file of its own for the whole.
      const isUsed = imported.some(
        (path) =>
          path === `./${name}` ||
          (/^\.\.?\//.test(path) && path.replace(/^\.\.?\//, '').startsWith(`${name}/`)),
      );
      expect(isUsed, name).toBe(true);
    }
  });

  async function kindsOf(path: string): Promise<unknown[]> {
    const exports = (await import(join(root, path))) as Record<string, unknown>;
    return Object.values(exports).filter(isPolicyKind);
  }

  function isPolicyKind(value: unknown): boolean {
    if (typeof value !== 'object' || value === null) return false;
    return ['key', 'schema', 'compile'].every((field) => field in value);
  }
});

describe('the folders of MCP and transport', () => {
  const folders = globSync(['src/server/mcp/**/', 'src/server/transport/**/'], { cwd: root });

  test.each(folders)('the files and folders in %s import each other one way', (folder) => {
    const imports = new Map<string, Set<string>>();
    for (const path of globSync(`${folder}/**/*.ts`, { cwd: root })) {
      const [from = ''] = relative(folder, path).split('/');
      const all = imports.get(from) ?? new Set();
      imports.set(from, all);
      for (const to of importsOf(read(path)).filter((each) => each.startsWith('.')))
        all.add(relative(folder, join(path, '..', to)).split('/')[0] ?? '');
      all.delete(from);
    }
    // A circle has no bottom: without the files and folders that import nothing of the rest, again and again, it is left.
    for (let size = 0; size !== imports.size; ) {
      size = imports.size;
      for (const [from, all] of imports) if (![...all].some((to) => imports.has(to))) imports.delete(from);
    }
    expect([...imports.keys()]).toEqual([]);
  });
});

describe('the kinds of backends', () => {
  const definitions = globSync('src/server/**/*.ts', { cwd: root }).flatMap((path) => {
    const name = /export const (\w+) = defineBackend\(/.exec(read(path))?.[1];
    return name === undefined ? [] : [{ path, name }];
  });

  test('only the list of kinds names one: other files ask its members', () => {
    expect(definitions.map(({ name }) => name).sort()).toEqual(anyBackendKinds.map(({ key }) => key).sort());
    const named = globSync('src/**/*.{ts,tsx}', { cwd: root }).flatMap((path) =>
      [...read(path).matchAll(/import (?:type )?\{([^}]*)\} from '([^']*)'/g)].flatMap(
        ([, names = '', from = '']) =>
          definitions
            .filter((kind) => from.startsWith('.') && join(root, path, '..', from) === join(root, kind.path))
            .filter(({ name }) => names.split(',').some((each) => each.trim().split(' ')[0] === name))
            .map(({ name }) => `${path}: ${name}`),
      ),
    );
    expect(named.sort()).toEqual(anyBackendKinds.map(({ key }) => `src/server/features.ts: ${key}`).sort());
  });

  test('plans of backends do not tell the settings of a kind', () => {
    const plan: BackendPlan['config'] = { host: 'service:80' };
    // @ts-expect-error -- `knownBackends` gives the kind and its settings
    expect(plan.host).toBe('service:80');
  });
});

test('every file of src/core is needed by two rooms', () => {
  const imports = new Map(
    globSync('src/**/*.{ts,tsx}', { cwd: root }).map((path) => [
      path,
      [...read(path).matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].map(([, to = '']) => join(path, '..', to)),
    ]),
  );
  const users = (path: string): string[] =>
    [...imports].filter(([, all]) => all.includes(path)).map(([at]) => at);
  const roomsOf = (path: string, seen = new Set<string>()): string[] => {
    if (seen.has(path)) return [];
    seen.add(path);
    if (!path.startsWith('src/core/')) return [path.split('/')[1] ?? ''];
    return users(path).flatMap((user) => roomsOf(user, seen));
  };
  const core = [...imports.keys()].filter((path) => path.startsWith('src/core/'));
  expect(core.filter((path) => new Set(roomsOf(path)).size < 2)).toEqual([]);
});

describe('the wire formats of LLM calls', () => {
  const folder = 'src/server/llm/formats';

  test('every defined format is in the list of formats', () => {
    const defined = globSync(`${folder}/**/*.ts`, { cwd: root }).flatMap((path) =>
      [...read(path).matchAll(/= defineFormat\(\{[\s\S]*?^ {2}key: '(\w+)',$/gm)].map(([, key]) => key),
    );
    expect(defined.sort()).toEqual(formats.map(({ key }) => key).sort());
  });

  test('only providers and realtime sessions know one format: other files ask the object of any', () => {
    const knowing = globSync('src/**/*.ts', { cwd: root })
      .filter((path) => !path.startsWith(folder))
      .filter((path) => importsOf(read(path)).some((from) => /\/formats\/[\w-]+\/[\w-]+\.ts$/.test(from)))
      .filter((path) => !/llm\/(?:providers|realtime)\//.test(path));
    expect(knowing).toEqual([]);
  });
});

describe('the files of commands', () => {
  // Short forms, and upstream's former names; every other leaf has a file of its own name.
  const shortForms = new Map([
    ['serve', 'gateway-serve'],
    ['logs', 'proxy-logs'],
    ['top', 'proxy-top'],
    ['trace', 'proxy-trace'],
    ['profile-cpu', 'proxy-profile-cpu'],
    ['profile-heap', 'proxy-profile-heap'],
    ['config-all', 'proxy-config-all'],
    ['config-routes', 'proxy-config-routes'],
    ['config-backends', 'proxy-config-backends'],
  ]);

  test('every command without subcommands has exactly one file', () => {
    const sink = new Writable();
    const program = createProgram({ stdout: sink, stderr: sink, env: {}, cwd: '/' }, () => undefined);
    const leaves = leavesOf(program).map((leaf) => shortForms.get(leaf) ?? leaf);
    const files = readdirSync(join(root, 'src/cli/commands'));
    expect(files.sort()).toEqual([...new Set(leaves)].map((leaf) => `${leaf}.ts`).sort());
  });

  test('commands are loaded only when they are used', () => {
    const program = readdirSync(join(root, 'src/cli'))
      .filter((name) => name.endsWith('program.ts'))
      .map((name) => read(`src/cli/${name}`))
      .join('');
    const onUse = [...program.matchAll(/import\('\.\/commands\/([^']+)'\)/g)].map(([, name]) => name);
    expect([...new Set(onUse)].sort()).toEqual(readdirSync(join(root, 'src/cli/commands')).sort());
    expect(importsOf(program).filter((path) => path.includes('commands/'))).toEqual([]);
  });

  function leavesOf(command: Command, words: readonly string[] = []): string[] {
    if (command.commands.length === 0) return [words.join('-')];
    return command.commands.flatMap((child) => leavesOf(child, [...words, child.name()]));
  }
});

describe('startup', () => {
  // The files of modules, and at the end the modules of Node.js.
  const hook = `
    import { writeSync } from 'node:fs';
    import { registerHooks } from 'node:module';
    registerHooks({ load(url, context, next) { writeSync(2, url + '\\n'); return next(url, context); } });
    process.on('exit', () => writeSync(2, process.moduleLoadList.join('\\n') + '\\n'));
  `;

  test('`agctl --version` loads nothing of the program, and `agctl --help` one file of it and no package', async () => {
    const filesOf = (loaded: string[]) => loaded.filter((line) => line.startsWith('file:')).map(fromRoot);
    const version = await loadedBy('--version');
    expect(version.stdout).toBe(`${JSON.parse(read('package.json')).version}\n`);
    expect(filesOf(version.loaded)).toEqual(['bin/agctl.js', 'package.json']);
    const help = await loadedBy('--help');
    expect(help.stdout).toContain('agctl');
    expect(filesOf(help.loaded)).toEqual([
      'bin/agctl.js',
      'dist/cli/main.js',
      'dist/cli/base.js',
      'dist/cli/rolldown-runtime.js',
    ]);
  });

  test('`agctl config validate` loads no package, no HTTP server and none of the modules for requests', async () => {
    const { loaded } = await loadedBy('config', 'validate', '-f', 'examples/policies.yaml');
    const files = loaded.filter((line) => line.startsWith('file:')).map(fromRoot);
    expect(files).toContain('dist/cli/config.js');
    expect(files.filter((file) => !/^(?:bin|dist\/cli)\//.test(file))).toEqual([]);
    expect(files.length).toBeLessThan(10);
    const forRequests = /^NativeModule (?:_?http|https|tls|zlib|dns|crypto|child_process|.*undici)/;
    expect(loaded.filter((line) => forRequests.test(line))).toEqual([]);
  });

  test('`agctl memory-adapter stdio --embedded` loads no schemas of gateways, and no installed package but one that may not be bundled', async () => {
    await using folder = await temporaryFolder();
    const { loaded } = await loadedBy('memory-adapter', 'stdio', '--embedded', '--data', folder.path);
    const files = loaded.filter((line) => line.startsWith('file:')).map(fromRoot);
    expect(files).toContain('dist/cli/memory.js');
    expect(files).not.toContain('dist/cli/config.js');
    expect(files.filter((file) => !/^(?:bin|dist\/cli)\//.test(file))).toEqual([
      expect.stringMatching(/^node_modules\/abstract-logging\//),
    ]);
  });

  async function loadedBy(...args: string[]): Promise<{ stdout: string; loaded: string[] }> {
    const preload = ['--import', `data:text/javascript,${encodeURIComponent(hook)}`];
    const running = run(process.execPath, [...preload, 'bin/agctl.js', ...args], { cwd: root });
    running.child.stdin?.end();
    const { stdout, stderr } = await running;
    return { stdout, loaded: stderr.split('\n') };
  }

  const fromRoot = (url: string): string => relative(root, fileURLToPath(url));
});

describe('the npm package', () => {
  test('the built program has no declarations with `using`, which Node.js 22 cannot read', () => {
    const files = globSync('dist/cli/*.{js,cjs}', { cwd: root });
    expect(files.length).toBeGreaterThan(30);
    expect(files.filter((file) => /^\s*(?:await )?using [\w$]+ = /m.test(read(file)))).toEqual([]);
  });
});

describe('docs/dependencies.md', () => {
  const [installed = '', bundled = '', development = ''] = read('docs/dependencies.md')
    .split('\n## ')
    .slice(1);
  const manifest = JSON.parse(read('package.json')) as Record<string, Record<string, string>>;

  test('docs/dependencies.md gives a reason for each package that is installed or bundled or helps to develop', () => {
    const { dependencies = {}, devDependencies = {} } = manifest;
    expect(reasonsIn(installed)).toEqual(Object.keys(dependencies).sort());
    const expected = Object.keys(devDependencies).filter((name) => !reasonsIn(bundled).includes(name));
    expect(reasonsIn(development)).toEqual(expected.sort());
  });

  test('the notices of the program contain the licence of each package that docs/dependencies.md calls bundled', () => {
    const notices = read('dist/THIRD-PARTY-NOTICES.txt').matchAll(/^(\S+) \d+\.\d+\.\d+ \(.+\)$/gm);
    expect([...notices].map(([, name]) => name)).toEqual(expect.arrayContaining(reasonsIn(bundled)));
  });

  /** Packages with a reason, sorted; those of one line share it. */
  function reasonsIn(text: string): string[] {
    const listed = text.split('\n').filter((line) => line.startsWith('- '));
    return listed
      .flatMap((line) => {
        const names = /^- ((?:`[^`]+`(?:, )?)+): \S.{15,}$/.exec(line)?.[1];
        return names?.replaceAll('`', '').split(', ') ?? [`no reason: ${line}`];
      })
      .sort();
  }
});

function importsOf(source: string): string[] {
  return [...source.matchAll(/^(?:import|export)\b[^;]*?\bfrom '([^']+)'/gm)].map(
    ([, path]) => path as string,
  );
}
