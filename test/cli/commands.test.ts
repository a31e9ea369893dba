import { spawnSync } from 'node:child_process';
import { existsSync, openSync, readFileSync } from 'node:fs';
import { Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { commandNodes } from '../../src/cli/man/command-page.ts';
import { createProgram } from '../../src/cli/program.ts';
import { cli } from '../kit/cli.ts';
import { AGCTL, agctl } from '../kit/process.ts';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

describe('the version', () => {
  test.each(['--version', '-V'])('agctl %s prints one line', async (flag) => {
    expect(await agctl([flag])).toEqual({ code: 0, signal: null, stdout: `${version}\n`, stderr: '' });
  });

  test('`agctl version` also prints the version of Node.js', async () => {
    const { code, stdout } = await cli(['version']);
    expect([code, stdout]).toEqual([0, `agctl ${version} (Node.js ${process.versions.node})\n`]);
  });

  test('`agctl version -o json` prints one JSON line', async () => {
    const { code, stdout, stderr } = await cli(['version', '-o', 'json']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout.endsWith('\n')).toBe(true);
    expect(JSON.parse(stdout)).toEqual({ version, node: process.versions.node });
  });
});

test.each([
  [['keys', 'revoke', ''], 'the argument <key> is empty'],
  [['users', 'revoke', ''], 'the argument <user> is empty'],
  [['memory', 'import', ''], 'the argument <file> is empty'],
  [['config', 'validate', ''], 'the name of a file is empty'],
  [['memory', 'export', '-o', ''], 'the option --out is empty'],
  [['audit', '--action='], 'the option --action is empty'],
  [['memory-adapter', 'serve', '--host', ''], 'the option --host is empty'],
])('`agctl %j` names the empty argument, before it asks anybody', async (args, message) => {
  const { code, stderr } = await cli(args);
  expect([code, stderr.split('\n')[0]]).toEqual([2, `error: ${message}`]);
});

describe('help', () => {
  test('`agctl` without arguments prints the commands and exits with 0', async () => {
    const { code, stdout, stderr } = await cli([]);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^Usage: agctl /);
    for (const command of ['serve', 'config', 'version', 'help'])
      expect(stdout).toMatch(new RegExp(`^ {2}${command}\\b`, 'm'));
  });

  test.each([['help'], ['--help'], ['-h']])('`agctl %s` also lists the exit codes', async (argument) => {
    const { code, stdout, stderr } = await cli([argument]);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^Usage: agctl /);
    expect(stdout).toMatch(/Exit codes:\n +0 .*\n +1 .*\n +2 /);
  });

  test.each([
    ['serve', '--help'],
    ['help', 'serve'],
  ])('`agctl %s %s` describes the command with an example', async (...args) => {
    const { code, stdout } = await cli(args);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Usage: agctl serve /);
    expect(stdout).toContain('--file <path>');
    expect(stdout).toContain('agctl serve -f gateway.yaml');
  });

  test.each(['config', 'gateway'])('`agctl %s` of a command group prints its commands', async (group) => {
    const { code, stdout, stderr } = await cli([group]);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain(`Usage: agctl ${group}`);
  });

  test('`agctl help proxy log` describes the subcommand', async () => {
    const { code, stdout } = await cli(['help', 'proxy', 'log']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Usage: agctl proxy log /);
  });

  test.each([
    ['--help proxy log', 'proxy log'],
    ['proxy -h log', 'proxy log'],
    ['proxy --admin localhost:1 log --help', 'proxy log'],
    ['--help --color never proxy', 'proxy'],
    ['--help config validate x.yaml', 'config validate'],
    ['--help', ''],
  ])('`agctl %s` prints the help of `%s`', async (words, command) => {
    const { code, stdout } = await cli(words.split(' '));
    expect([code, stdout.split('\n')[0]]).toEqual([0, expect.stringContaining(`agctl ${command}`)]);
  });

  test('every command and group prints its own help', async () => {
    const sink = new Writable({ write: (_chunk, _encoding, done) => done() });
    const context = { stdout: sink, stderr: sink, env: {}, cwd: '/' };
    const paths = commandNodes(createProgram(context, () => undefined)).map(({ words }) => words.slice(1));
    expect(paths.length).toBeGreaterThan(50);
    for (const path of [...paths, ['exit-codes']])
      for (const words of [
        [...path, '--help'],
        ['help', ...path],
        ['-h', ...path],
      ]) {
        const { code, stdout } = await cli(words);
        const isTable = path[0] === 'exit-codes';
        const usage = isTable ? /^ +0 / : new RegExp(`^Usage: agctl ?${path.join('(?:\\|\\w+)? ')}\\b`);
        expect([words, code, stdout]).toEqual([words, 0, expect.stringMatching(usage)]);
      }
  });

  test('`agctl help exit-codes` prints the exit codes', async () => {
    const { code, stdout } = await cli(['help', 'exit-codes']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ {4}0 {2}The command succeeded/);
    expect(stdout).toContain('130');
    expect(stdout).not.toContain('Usage');
  });
});

describe('usage errors', () => {
  test.each([
    [['--versio'], "unknown option '--versio'\n(Did you mean --version?)"],
    [['serve', '--fiel', 'x'], "unknown option '--fiel'\n(Did you mean --file?)"],
    [['help', 'nope'], "unknown command 'nope'"],
    [['help', 'proxy', 'lgo'], "unknown command 'lgo'\n(Did you mean log?)"],
    [['help', 'serv'], "unknown command 'serv'\n(Did you mean serve?)"],
    [['test', '--help'], "unknown command 'test'"],
    [['-h', 'nope'], "unknown command 'nope'"],
    [['proxy', 'lgo', '-h'], "unknown command 'lgo'\n(Did you mean log?)"],
    [['proxy', 'config', 'bakends', '--help'], "unknown command 'bakends'\n(Did you mean backends?)"],
    [['config', 'valid', '-f', 'x'], "unknown command 'valid'\n(Did you mean validate?)"],
    ...[['serve'], ['gateway', 'serve'], ['check'], ['config', 'validate']].map((args) => [
      args,
      'no configuration file: this folder has no gateway.yaml\n  = help: create one with `agctl init`, or name one with -f',
    ]),
    [['auth', 'explain'], "required option '--token-file <path>' not specified"],
    [['--env-from', 'no-such.env', 'serve'], 'no such file: no-such.env'],
    [['version', '-o', 'xml'], "argument 'xml' is invalid. Allowed choices are text, json."],
    [
      ['--color', 'sometimes', 'version'],
      "argument 'sometimes' is invalid. Allowed choices are auto, always, never.",
    ],
    [['config', 'validate', 'no-such.yaml'], 'no such file: no-such.yaml'],
    [['serve', '-f', 'no-such.yaml'], 'no such file: no-such.yaml'],
    [['config', 'validate', '/'], '/ is a directory'],
    [['version', 'extra'], 'too many arguments'],
    [['serve', 'gw.yaml'], "too many arguments for 'serve': gw.yaml\n(Did you mean -f gw.yaml?)"],
    [['serve', 'gw.yaml'], "too many arguments for 'serve': gw.yaml\n(Did you mean -f gw.yaml?)"],
    [['serve', '-f', 'a.yaml', '--file=b.yaml'], "'-f, --file <path>' is given twice, but takes one value"],
    [['version', '-o', 'json', '-o', 'text'], "'-o, --output <format>' is given twice"],
    [['--color', 'never', 'version', '--color', 'always'], "'--color <when>' is given twice"],
  ] as [string[], string][])('the usage error %j is exit code 2 with a correction', async (args, message) => {
    const { code, stdout, stderr } = await cli(args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/error(?:\[AGW0005\])?: /);
    expect(stderr).toContain(message);
    expect(stderr).not.toMatch(/\n {4}at /);
  });

  test.each([['serv'], ['config', 'valdate']])(
    'an unknown command is exit code 2: %s %s',
    async (...args) => {
      const { code, stdout } = await cli(args.filter((arg) => arg !== undefined));
      expect([code, stdout]).toEqual([2, '']);
    },
  );

  test.each([
    [['serv'], 'serve'],
    [['config', 'valdate'], 'validate'],
  ])('an unknown command names the nearest one: %j', async (args, nearest) => {
    const { stderr } = await cli(args);
    expect(stderr).toContain('unknown command');
    expect(stderr).toContain(`Did you mean ${nearest}?`);
  });
});

describe('closed pipes', () => {
  test('a reader that closes the pipe after one line ends the command without an error', async () => {
    // More than a pipe holds, so that the command is still writing when its reader has gone.
    expect((await cli(['config', 'schema'])).stdout.length).toBeGreaterThan(65_536);
    const script = '( "$0" "$1" config schema; echo "exit $?" >&2 ) | head -1';
    const { stdout, stderr } = spawnSync('sh', ['-c', script, process.execPath, AGCTL], { encoding: 'utf8' });
    expect([stdout, stderr]).toEqual(['{\n', 'exit 0\n']);
  });

  test.skipIf(!existsSync('/dev/full'))('a command whose output finds no room says so and fails', () => {
    const full = openSync('/dev/full', 'w');
    const { status, stderr } = spawnSync(process.execPath, [AGCTL, '--version'], {
      stdio: ['ignore', full, 'pipe'],
      encoding: 'utf8',
    });
    expect([status, stderr.split('\n')[0]]).toEqual([
      1,
      'error: stdout cannot be written: ENOSPC: no space left on device, write',
    ]);
  });
});
