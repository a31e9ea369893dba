// Mutation testing: changes one place of a source file at a time and reports which changes no test notices.
//
//   npm run mutants -- PATH... [--all] [--tests GLOB]... [--limit N] [--seed S] [--jobs 1|2] [--at-least PERCENT]
//
// Without `--all` (or with `--shapes`), only checks of values are changed: types, bounds, fallbacks, optional chains.
// Without `--tests`, the tests run that mirror the file (test/a/b.test.ts of src/a/b.ts), then, if these pass, those in the
// folder that mirrors its own, or the nearest above, and then all of `npm run test:fast` that import it.
// Everything happens in copies of the checkout in a temporary folder.
import { spawn, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { constants, setPriority, tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { mutationsOf, placeOf, sample } from './mutations.mjs';
import { root } from './run.mjs';

const { values: options, positionals: paths } = parseArgs({
  allowPositionals: true,
  options: {
    all: { type: 'boolean', default: false },
    shapes: { type: 'boolean', default: false },
    tests: { type: 'string', multiple: true, default: [] },
    limit: { type: 'string', default: 'Infinity' },
    seed: { type: 'string', default: '1' },
    jobs: { type: 'string', default: '2' },
    'at-least': { type: 'string', default: '0' },
  },
});
if (paths.length === 0) fail('expected a file or folder below src: npm run mutants -- src/core/sse.ts');

const files = paths.flatMap(sourcesOf);
const possible = files.flatMap((file) => {
  const text = readFileSync(join(root, file), 'utf8');
  return mutationsOf(text, file, { all: options.all }).map((mutation) => ({ ...mutation, file, text }));
});
const mutants = sample(possible, Number(options.limit), Number(options.seed));
if (mutants.length === 0) fail(`no place to change in ${paths.join(', ')}`);

const scratch = mkdtempSync(join(tmpdir(), 'agctl-mutants-'));
const running = new Set();
process.on('exit', () => {
  for (const child of running) end(child);
  rmSync(scratch, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130));

const jobs = Math.max(1, Math.min(2, Number(options.jobs), mutants.length));
const copies = Array.from({ length: jobs }, (_, index) => copyOfCheckout(join(scratch, String(index))));
/** Time limits in ms of runs of Vitest, by their arguments. */
const limits = new Map();

const outcomes = { killed: 0, timeout: 0, survived: 0 };
const queue = [...mutants];
await Promise.all(
  copies.map(async (copy) => {
    for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
      const outcome = await outcomeOf(copy, mutant);
      outcomes[outcome] += 1;
      const place = `${mutant.file}:${placeOf(mutant.text, mutant.start)}`;
      console.log(
        `${outcome.padEnd(8)}  ${place}  ${short(mutant.original)} → ${short(mutant.replacement) || '(removed)'}`,
      );
    }
  }),
);
const share = (100 * (outcomes.killed + outcomes.timeout)) / mutants.length;
console.log(
  `${outcomes.killed} killed, ${outcomes.timeout} timeouts, ${outcomes.survived} survived: ${share.toFixed(1)} % of ` +
    `${mutants.length} noticed${possible.length > mutants.length ? ` (a sample of ${possible.length})` : ''}`,
);
process.exit(share < Number(options['at-least']) ? 1 : 0);

/** What the tests make of a mutant. A run that does not end was noticed, too: so does CI. */
async function outcomeOf(copy, { file, text, start, end: stop, replacement }) {
  const target = join(copy, file);
  const mutant = text.slice(0, start) + replacement + text.slice(stop);
  try {
    for (const args of testRuns(file)) {
      writeFileSync(target, text);
      const limit = await timeLimit(copy, args);
      writeFileSync(target, mutant);
      const result = await vitest(copy, args, limit);
      if (result !== 'passed') return result === 'timeout' ? 'timeout' : 'killed';
    }
    return 'survived';
  } finally {
    writeFileSync(target, text);
  }
}

/** How long a run of Vitest may take, in ms: three times what it takes without a change, and 20 s. */
async function timeLimit(copy, args) {
  const key = args.join(' ');
  const known = limits.get(key);
  if (known !== undefined) return known;
  const started = performance.now();
  if ((await vitest(copy, args, 600_000, 'inherit')) !== 'passed')
    fail(`vitest ${key} fails without a change; choose tests that pass with --tests`);
  const limit = 3 * (performance.now() - started) * jobs + 20_000;
  limits.set(key, limit);
  return limit;
}

function testRuns(file) {
  if (options.tests.length > 0)
    return [['run', ...options.tests.flatMap((glob) => globSync(glob, { cwd: root }))]];
  const base = file.replace(/^src\//, 'test/').replace(/\.tsx?$/, '');
  const mirrored = [`${base}.test.ts`, `${base}/index.test.ts`].filter((test) =>
    existsSync(join(root, test)),
  );
  let near = dirname(base);
  while (!existsSync(join(root, near))) near = dirname(near);
  return [
    ...mirrored.map((test) => ['run', test]),
    ['run', `${near}/`],
    ['related', file, '--run', '--mode', 'fast'],
  ];
}

function vitest(copy, args, limit, stderr = 'ignore') {
  const program = join(root, 'node_modules/vitest/vitest.mjs');
  const child = spawn(
    process.execPath,
    [program, ...args, '--bail=1', '--maxWorkers=1', '--passWithNoTests', '--reporter=dot'],
    {
      cwd: copy,
      // A group of its own, which ends with all that the tests have started.
      detached: true,
      stdio: ['ignore', 'ignore', stderr],
      env: { ...process.env, CI: 'mutants' },
    },
  );
  if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
  running.add(child);
  return new Promise((settle) => {
    const timer = setTimeout(() => {
      settle('timeout');
      end(child);
    }, limit);
    child.once('error', (error) => fail(error.message));
    child.once('exit', (status) => {
      clearTimeout(timer);
      end(child);
      running.delete(child);
      settle(status === 0 ? 'passed' : 'failed');
    });
  });
}

function end(child) {
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // Nothing of it runs any more.
  }
}

/** The files that git knows or would add, and what is built; dependencies are a link. */
function copyOfCheckout(folder) {
  const listed = spawnSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
  });
  for (const file of listed.stdout.toString().split('\0').filter(Boolean)) {
    if (!existsSync(join(root, file))) continue;
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    copyFileSync(join(root, file), join(folder, file));
  }
  if (existsSync(join(root, 'dist'))) cpSync(join(root, 'dist'), join(folder, 'dist'), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

function sourcesOf(path) {
  const file = relative(root, resolve(path));
  if (!existsSync(join(root, file))) fail(`${path} does not exist`);
  if (!statSync(join(root, file)).isDirectory()) return [file];
  return globSync(`${file}/**/*.{ts,tsx}`, { cwd: root }).filter((each) => !/\.(?:d|test)\.ts$/.test(each));
}

function short(code) {
  const line = code.replace(/\s+/g, ' ');
  return line.length > 90 ? `${line.slice(0, 88)} …` : line;
}

function fail(message) {
  console.error(`mutants: ${message}`);
  process.exit(2);
}
