import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse, parseDocument } from 'yaml';

// What the host of the repository reads: workflows, templates, addresses.

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (file: string): string => readFileSync(join(root, file), 'utf8');
const manifest = JSON.parse(read('package.json')) as {
  readonly scripts: Readonly<Record<string, string>>;
  readonly engines: { readonly node: string };
  readonly repository: { readonly url: string };
  readonly homepage: string;
  readonly bugs: string;
};
const files = globSync('.github/**/*.yml', { cwd: root }).sort();
const workflows = files.filter((file) => file.startsWith('.github/workflows/'));

interface Job {
  readonly permissions?: Readonly<Record<string, string>>;
  readonly 'timeout-minutes'?: number;
  readonly strategy?: { readonly matrix: { readonly node: readonly number[] } };
  readonly steps: readonly {
    readonly run?: string;
    readonly uses?: string;
    readonly with?: Readonly<Record<string, unknown>>;
  }[];
}

interface Workflow {
  readonly on: object;
  readonly permissions?: object;
  readonly jobs: Readonly<Record<string, Job>>;
}

const jobsOf = (file: string): [string, Job][] => Object.entries((parse(read(file)) as Workflow).jobs);
const stepsOf = (file: string): Job['steps'] => jobsOf(file).flatMap(([, { steps }]) => steps);

test.each([...files])('%s is YAML without errors and warnings', (file) => {
  const { errors, warnings } = parseDocument(read(file));
  expect([...errors, ...warnings]).toEqual([]);
});

describe.each(workflows)('%s', (file) => {
  test(`every script and file that a step of ${file} runs exists`, () => {
    const commands = stepsOf(file).map(({ run = '' }) => run);
    const scripts = commands.flatMap((run) =>
      [...run.matchAll(/\bnpm (?:run (?:--silent )?([\w:-]+)|(test)\b)/g)].map(
        ([, name, test]) => name ?? test,
      ),
    );
    expect(scripts.filter((name) => !((name as string) in manifest.scripts))).toEqual([]);
    const paths = commands.flatMap(
      (run) => run.match(/(?<![\w/])(?:bin|deploy|node_modules|scripts)\/[\w./-]+/g) ?? [],
    );
    const named = stepsOf(file).flatMap(({ with: { file: path, 'node-version-file': version } = {} }) =>
      [path, version].filter((each) => typeof each === 'string'),
    );
    expect(scripts.length + paths.length + named.length).toBeGreaterThan(1);
    expect([...paths, ...named].filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  test(`the jobs of ${file} have a time limit and only the permissions that they name`, () => {
    const { on, permissions } = parse(read(file)) as Workflow;
    expect(permissions).toEqual({});
    expect(Object.keys(on)).not.toContain('pull_request_target');
    for (const [name, job] of jobsOf(file)) {
      expect(Object.keys(job.permissions ?? {}), name).toContain('contents');
      expect(job['timeout-minutes'], name).toBeGreaterThan(0);
    }
    // Secrets in a script would be in its text, and so would be what strangers write, such as names of branches.
    for (const { run = '' } of stepsOf(file)) expect(run).not.toContain('${{');
  });

  test(`the actions of ${file} have the tag of a version, and keep no credentials in the checkout`, () => {
    const used = stepsOf(file).filter(({ uses }) => uses !== undefined);
    expect(used.length).toBeGreaterThan(0);
    for (const { uses, with: inputs } of used) {
      expect(uses).toMatch(/^[\w-]+\/[\w-]+@v\d+(?:\.\d+)*$/);
      if (uses?.startsWith('actions/checkout@'))
        expect(inputs).toMatchObject({ 'persist-credentials': false });
    }
  });
});

test('the workflow `test` uses the oldest Node.js that package.json allows, and the one of .nvmrc', () => {
  const [, oldest] = />=(\d+)/.exec(manifest.engines.node) ?? [];
  for (const [name, { strategy }] of jobsOf('.github/workflows/test.yml'))
    if (strategy !== undefined)
      expect(strategy.matrix.node, name).toEqual(
        expect.arrayContaining([Number(oldest), Number(read('.nvmrc'))]),
      );
});

test('package.json, README.md and the guide on GitHub Actions name the same repository', () => {
  const [, name] = /^git\+https:\/\/github\.com\/([\w-]+\/[\w-]+)\.git$/.exec(manifest.repository.url) ?? [];
  expect(manifest.homepage).toBe(`https://github.com/${name}#readme`);
  expect(manifest.bugs).toBe(`https://github.com/${name}/issues`);
  expect(read('README.md')).toContain(`https://github.com/${name}/releases`);
  const guide = read('docs/guides/github-actions.md');
  expect(guide).toContain(`uses: ${name}@v`);
  expect(guide).toContain(`repo: https://github.com/${name}\n`);
});

test('every path in CODEOWNERS exists', () => {
  const paths = read('.github/CODEOWNERS').match(/^\/\S+/gm) ?? [];
  expect(paths.length).toBeGreaterThan(5);
  expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});
