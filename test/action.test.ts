import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { temporaryFolder } from './kit/folder.ts';
import { AGCTL } from './kit/process.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (file: string): string => readFileSync(join(root, file), 'utf8');

interface Action {
  readonly inputs: Record<string, { readonly default: string }>;
  readonly outputs: Record<string, { readonly value: string }>;
  readonly runs: {
    readonly using: string;
    readonly steps: readonly {
      readonly id: string;
      readonly shell: string;
      readonly run: string;
      readonly env: Readonly<Record<string, string>>;
    }[];
  };
}

const action = parse(read('action.yml')) as Action;

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly outputs: Record<string, string>;
}

/** Runs a step of action.yml as a runner does: inputs in its environment, `bash -e -o pipefail`. */
async function runStep(
  id: string,
  inputs: Record<string, string>,
  files: Record<string, string>,
): Promise<Ran> {
  await using folder = await temporaryFolder();
  const step = action.runs.steps.find((each) => each.id === id);
  const values = Object.fromEntries(
    Object.entries(action.inputs).map(([name, input]) => [name, inputs[name] ?? input.default]),
  );
  const bin = join(folder.path, 'bin');
  const work = join(folder.path, 'work');
  for (const path of [bin, work]) mkdirSync(path);
  // As npm installs it: executable.
  writeFileSync(join(bin, 'npm'), '#!/bin/sh\n[ "$1" = pack ] && echo packed.tgz || echo "npm $@"\n', {
    mode: 0o755,
  });
  writeFileSync(join(bin, 'agctl'), `#!/bin/sh\nexec node ${AGCTL} "$@"\n`, { mode: 0o755 });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(work, name), text);
  const output = join(folder.path, 'output');
  const env = {
    ...Object.fromEntries(
      Object.entries(step?.env ?? {}).map(([name, value]) => [
        name,
        value.replace(/\$\{\{ inputs\.(\w+) \}\}/g, (_, input: string) => values[input] as string),
      ]),
    ),
    PATH: [bin, dirname(process.execPath), '/usr/bin:/bin'].join(':'),
    RUNNER_TEMP: folder.path,
    GITHUB_ACTION_PATH: folder.path,
    GITHUB_OUTPUT: output,
  };
  return await new Promise((resolve) => {
    const args = ['--noprofile', '--norc', '-eo', 'pipefail', '-c', step?.run ?? 'exit 99'];
    execFile('bash', args, { cwd: work, env }, (error, stdout) => {
      const lines = existsSync(output) ? readFileSync(output, 'utf8').trim().split('\n') : [];
      resolve({
        code: Number(error?.code ?? 0),
        stdout,
        outputs: Object.fromEntries(lines.map((line) => line.split('='))) as Record<string, string>,
      });
    });
  });
}

const VALID = 'gateways:\n  a:\n    port: 0\n    routes: [{ policies: { directResponse: { body: x } } }]\n';
const UNUSED = 'gateways:\n  a: { port: 0 }\n';

describe('action.yml', () => {
  test('action.yml validates gateway.yaml by default', async () => {
    const { code, stdout, outputs } = await runStep('validate', {}, { 'gateway.yaml': VALID });
    expect([code, stdout, outputs]).toEqual([0, '', { errors: '0', warnings: '0' }]);
  });

  test('action.yml annotates each error at its line, in several files and patterns', async () => {
    const { code, stdout, outputs } = await runStep(
      'validate',
      { files: 'a.yaml\nb-*.yaml' },
      {
        'a.yaml': VALID,
        'b-1.yaml': VALID.replace('port: 0', 'prt: 0'),
        'b-2.yaml': VALID.replace('0', 'x'),
      },
    );
    expect(code).toBe(1);
    expect(stdout).toMatch(/^::error file=b-1\.yaml,line=3,/m);
    expect(stdout).toMatch(/^::error file=b-2\.yaml,line=3,/m);
    expect(Number(outputs['errors'])).toBeGreaterThanOrEqual(2);
  });

  test('action.yml installs its own repository, or the package that is named, and never one of another project', async () => {
    const installed = async (inputs: Record<string, string>): Promise<string | undefined> =>
      (await runStep('install', inputs, {})).stdout.trim().split(' ').at(-1);
    expect(await installed({})).toBe('packed.tgz');
    expect(await installed({ package: 'https://example.com/agctl.tgz' })).toBe(
      'https://example.com/agctl.tgz',
    );
  });

  test('warnings fail action.yml only with strict', async () => {
    const files = { 'gateway.yaml': UNUSED };
    const strict = await runStep('validate', {}, files);
    expect([strict.code, strict.outputs['errors']]).toEqual([1, '1']);
    const lenient = await runStep('validate', { strict: 'false' }, files);
    expect([lenient.code, lenient.outputs]).toEqual([0, { errors: '0', warnings: '1' }]);
  });

  test('action.yml passes variables on, and their values are no commands', async () => {
    const files = {
      'gateway.yaml': VALID.replace('port: 0', 'port: $PORT').replace('body: x', 'body: $TEXT'),
    };
    const given = { env: 'PORT=0\nTEXT=$(touch hacked); `touch hacked` a=b' };
    expect(await runStep('validate', given, files)).toMatchObject({ code: 0, stdout: '' });
    expect((await runStep('validate', {}, files)).stdout).toContain('PORT');
    const wrong = await runStep('validate', { env: 'not a variable' }, files);
    expect([wrong.code, wrong.stdout]).toEqual([2, '::error::env: expected NAME=value in each line\n']);
  });

  test('action.yml passes inputs in the environment only, so that no input is run as a script', () => {
    for (const { run } of action.runs.steps) expect(run).not.toContain('${{');
    expect(action.runs.using).toBe('composite');
  });
});

test('the pre-commit hook runs a command that exists, on files that it can check', async () => {
  const [hook] = parse(read('.pre-commit-hooks.yaml')) as { entry: string; files: string }[];
  expect(hook?.entry).toBe('agctl config validate --strict');
  const pattern = new RegExp(hook?.files ?? '');
  expect(['gateway.yaml', 'deploy/gateway.yml'].every((file) => pattern.test(file))).toBe(true);
  expect(['my-gateway.yaml', 'gateway.yaml.bak'].some((file) => pattern.test(file))).toBe(false);
});
