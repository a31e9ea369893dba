import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { cpSync, existsSync, globSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { PACKAGE_NAME } from '../../src/core/version.ts';
import { blocksIn, codeOfPages, commandsOf } from '../kit/documentation.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { isAlive } from '../kit/is-alive.ts';
import { freePort } from '../kit/ports.ts';
import { until } from '../kit/until.ts';
import { followGuide } from './guide.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string): string => readFileSync(join(root, file), 'utf8');
/** Two builds and five servers, which a busy machine takes a minute for. */
const TIMEOUT = 400_000;

const [start, tryIt, install, ...ofServers] = blocksIn('README.md').filter(
  ({ language }) => language === 'sh',
);

test('README.md takes two screens, and begins with npm start and npm test', () => {
  const text = read('README.md');
  expect(text.split('\n').length).toBeLessThanOrEqual(100);
  expect(text.split(/\s+/).length).toBeLessThanOrEqual(600);
  expect(commandsOf(start?.text ?? '')).toEqual([
    ['npm', 'start'],
    ['npm', 'test'],
  ]);
});

/** A copy of the checkout, with the packages that are installed here. */
async function checkout() {
  const folder = await temporaryFolder();
  const at = join(folder.path, 'agctl');
  mkdirSync(at);
  for (const name of [
    'bin',
    'docs',
    'examples',
    'man',
    'package.json',
    'package-lock.json',
    'scripts',
    'src',
  ])
    cpSync(join(root, name), join(at, name), { recursive: true });
  for (const name of ['.npmrc', 'tsconfig.json']) cpSync(join(root, name), join(at, name));
  symlinkSync(join(root, 'node_modules'), join(at, 'node_modules'));
  const temporary = join(folder.path, 'tmp');
  const prefix = join(folder.path, 'global');
  const own = join(folder.path, 'own');
  for (const path of [temporary, prefix, own]) mkdirSync(path);
  const env = {
    PATH: [join(prefix, 'bin'), dirname(process.execPath), '/usr/local/bin:/usr/bin:/bin'].join(':'),
    HOME: folder.path,
    TMPDIR: temporary,
    ADMIN_ADDR: 'off',
    STATS_ADDR: 'off',
    READINESS_ADDR: 'off',
    // Nothing may be downloaded: what a command needs is in the checkout.
    npm_config_registry: 'http://127.0.0.1:1',
    npm_config_fetch_retries: '0',
    npm_config_prefix: prefix,
  };
  return { at, own, temporary, env, [Symbol.asyncDispose]: folder[Symbol.asyncDispose] };
}

/** What the commands of a block print, each run as it is written. */
const run = (text: string, cwd: string, env: Record<string, string>): Promise<string> =>
  new Promise((resolve, reject) => {
    execFile('bash', ['-eo', 'pipefail', '-c', text], { cwd, env }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${text}: ${stderr || error.message}`));
    });
  });

/** Ids of a process and of all that descend from it. */
async function descendants(of: number): Promise<number[]> {
  const table = await run('ps -eo pid=,ppid=', '/', { PATH: '/usr/bin:/bin' });
  const rows = table
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number));
  const found = [of];
  for (const id of found) found.push(...rows.flatMap(([pid = 0, parent]) => (parent === id ? [pid] : [])));
  return found;
}

function endGroup({ pid = 0 }: ChildProcess): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // All of it has ended.
  }
}

test('the quick start of README.md serves what it says, installs the command, and leaves nothing behind when npm is ended', {
  timeout: TIMEOUT,
}, async () => {
  await using copy = await checkout();
  const [port, llmPort] = [String(await freePort()), String(await freePort())];
  const env = { ...copy.env, QUICKSTART_PORT: port, QUICKSTART_LLM_PORT: llmPort };
  // A group of its own, which is ended as a whole if this test fails.
  const npm: ChildProcess = spawn('npm', ['start'], { cwd: copy.at, env, detached: true });
  let output = '';
  for (const stream of [npm.stdout, npm.stderr]) stream?.on('data', (chunk) => (output += chunk));
  try {
    await until(() => output.includes('Try, in another terminal'), TIMEOUT).catch(() => {
      throw new Error(output);
    });
    const written = tryIt?.text.replaceAll(':3000', `:${port}`).replaceAll(':4000', `:${llmPort}`) ?? '';
    expect(written).toContain(`${port}/mcp`);
    const printed = await run(written, copy.at, env);
    expect(printed).toMatch(/tools: .*everything_echo/);
    expect(printed).toContain('"content":"hello"');

    const version = await run(install?.text ?? '', copy.at, copy.env);
    expect(version).toMatch(/^agctl \d+\.\d+\.\d+ /m);
    await run(commandsOf(ofServers[0]?.text ?? '')[0]?.join(' ') ?? '', copy.own, copy.env);
    expect(existsSync(join(copy.own, 'gateway.yaml'))).toBe(true);

    expect(readdirSync(copy.temporary).some((name) => name.startsWith('agctl-quickstart-'))).toBe(true);
    const started = await descendants(npm.pid ?? 0);
    expect(started.length).toBeGreaterThan(4);
    npm.kill('SIGTERM');
    await until(() => !started.some(isAlive), 30_000);
    expect(readdirSync(copy.temporary).filter((name) => name.startsWith('agctl-quickstart-'))).toEqual([]);
  } finally {
    endGroup(npm);
  }
});

test('the commands of README.md for servers of the reader can be followed in a folder', async () => {
  await using followed = await followGuide({ name: 'README.md', blocks: ofServers });
  expect(followed.printed[0]).toContain('\n  agctl serve\n  agctl connect claude');
  const { mcpServers } = JSON.parse(readFileSync(join(followed.folder, '.mcp.json'), 'utf8'));
  expect(mcpServers.agctl.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
});

test('the commands of docs/first-steps.md can be followed in a folder', async () => {
  const blocks = blocksIn('docs/first-steps.md').filter(({ text }) => text !== '');
  await using followed = await followGuide(
    { name: 'first-steps.md', blocks },
    { 'memory serve --docs .': 'memory serve --docs . --port 0 --backend-port 0' },
  );
  expect(existsSync(join(followed.folder, 'gateway.yaml'))).toBe(true);
  expect(followed.files.has('servers.yaml')).toBe(true);
});

describe('packages that users are told to run', () => {
  const files = globSync(
    [
      '{README,CONTRIBUTING,ARCHITECTURE,SECURITY}.md',
      'docs/**/*.md',
      'src/**/*.{ts,tsx}',
      'man/*',
      '{examples,scripts,deploy,bench,bin}/**/*.{mjs,js,yaml,yml,service,txt,md}',
      'deploy/Dockerfile',
      'action.yml',
      '.pre-commit-hooks.yaml',
    ],
    { cwd: root, exclude: ['**/node_modules/**', 'docs/site/**'] },
  );
  /** Where \`npx agctl\` is said of a folder that has this package installed. */
  const ABOUT_INSTALLATIONS = ['docs/first-steps.md', 'src/cli/invocation.ts'];

  test('no text tells a user to run or install the package agctl of npm, which is of another project', () => {
    expect(files.length).toBeGreaterThan(500);
    const foreign =
      /\bnpx (?:-\S+ )*agctl\b|\bnpm (?:install|i|exec|add)\b[^\n`]*[ "']agctl(?=[@ "'`\n]|$)|node_modules\/agctl\/|additional_dependencies/m;
    const found = files.filter((file) => foreign.test(read(file)));
    expect(found.filter((file) => !ABOUT_INSTALLATIONS.includes(file))).toEqual([]);
    // The expression finds what it is for.
    for (const text of [
      'npx agctl serve',
      'npx -y agctl serve',
      'npm install -g agctl',
      'npm i "agctl@1.0.0"',
    ])
      expect(text).toMatch(foreign);
  });

  test('README.md and all pages name this package as package.json does', () => {
    const names = files.flatMap((file) => [...read(file).matchAll(/@agctl\/[\w-]+/g)].map(([name]) => name));
    expect(read('README.md')).toContain(`\`${PACKAGE_NAME}\``);
    expect([...new Set(names)]).toEqual([PACKAGE_NAME]);
    expect(JSON.parse(read('package-lock.json')).name).toBe(PACKAGE_NAME);
  });

  test('packages in scripts of the documentation are those that this project uses, or files', () => {
    const { devDependencies, peerDependencies, dependencies } = JSON.parse(read('package.json'));
    const parts = globSync('scripts/parts/*/package.json', { cwd: root }).map((file) =>
      JSON.parse(read(file)),
    );
    const known = [devDependencies, peerDependencies, dependencies, ...parts.map((part) => part.dependencies)]
      .flatMap(Object.keys)
      .concat('mcp-remote');
    const named = codeOfPages()
      .blocks.filter(({ language }) => language === 'sh')
      .flatMap(({ text }) => commandsOf(text))
      .flatMap(([program, ...args]) => {
        const words = args.filter((word) => !word.startsWith('-'));
        if (program === 'npx') return words.slice(0, 1);
        return program === 'npm' && words[0] === 'install' ? words.slice(1) : [];
      })
      .filter((word) => !/^[.$]|\.tgz$/.test(word));
    expect(named.length).toBeGreaterThan(2);
    expect(
      named.map((word) => word.replace(/(?<=.)@.*/, '')).filter((name) => !known.includes(name)),
    ).toEqual([]);
  });
});
