import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { hasTerminal, terminal } from '../kit/terminal.ts';

const { path: folder, remove } = await temporaryFolder();
afterAll(remove);
mkdirSync(join(folder, 'some-folder'));
writeFileSync(join(folder, 'some-file.yaml'), '');

async function script(shell: string): Promise<string> {
  const path = join(folder, `agctl.${shell}`);
  writeFileSync(path, (await cli(['completion', shell])).stdout);
  return path;
}

function has(shell: string): boolean {
  try {
    execFileSync(shell, ['-c', ':']);
    return true;
  } catch {
    process.stderr.write(`${shell} is not installed: ITS COMPLETION IS NOT TESTED\n`);
    return false;
  }
}

/** Words before the cursor, and what is offered. */
const CASES: [string, string[]][] = [
  ['agctl ser', ['serve']],
  ['agctl config va', ['validate']],
  ['agctl proxy config ', ['all', 'backends', 'routes']],
  ['agctl proxy cfg ba', ['backends']],
  ['agctl config validate --st', ['--strict']],
  ['agctl config validate -o ', ['concise', 'github', 'json', 'sarif', 'text']],
  ['agctl --color al', ['always']],
  ['agctl serve --color ne', ['never']],
  ['agctl connect cu', ['cursor']],
  ['agctl completion po', ['powershell']],
  ['agctl serve -f some', ['some-file.yaml', 'some-folder']],
  ['agctl config convert some-fi', ['some-file.yaml']],
  ['agctl memory-backend serve --data some', ['some-folder']],
  ['agctl --color never proxy tr', ['trace']],
  ['agctl costs import --pr', ['--pretty', '--providers']],
  ['agctl config schema x', []],
];

describe('bash', () => {
  test.runIf(has('bash')).each(CASES)('bash completes %j', async (line, expected) => {
    const run = `source "$0"; COMP_WORDS=(${line}${line.endsWith(' ') ? '""' : ''}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _agctl; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const out = execFileSync('bash', ['-c', run, await script('bash')], { cwd: folder, encoding: 'utf8' });
    expect(lines(out)).toEqual(expected);
  });

  test.runIf(has('bash') && hasTerminal)('the Tab key completes in an interactive bash', async () => {
    await using screen = await terminal();
    await screen.press(`clear; exec bash --rcfile ${await script('bash')} -i`, 'Enter');
    await screen.press(`PS1='> '; clear`, 'Enter');
    await screen.shows(/^> *$/m);
    await screen.press('agctl config vali', 'Tab');
    await screen.shows('agctl config validate');
  });
});

describe('fish', () => {
  test.runIf(has('fish')).each(CASES)('fish completes %j', async (line, expected) => {
    const run = `source ${await script('fish')}; complete -C '${line}'`;
    const out = execFileSync('fish', ['--no-config', '-c', run], { cwd: folder, encoding: 'utf8' });
    expect(lines(out).map((each) => each.split('\t')[0]?.replace(/\/$/, ''))).toEqual(expected);
  });
});

describe('zsh', () => {
  test.runIf(has('zsh') && hasTerminal)('the Tab key completes in an interactive zsh', async () => {
    await using screen = await terminal({ columns: 100 });
    await screen.press(`clear; cd ${folder}; exec zsh -f`, 'Enter');
    await screen.press(
      `PS1='> '; autoload -Uz compinit; compinit -D -u; source ${await script('zsh')}; clear`,
      'Enter',
    );
    await screen.shows(/^> *$/m);
    for (const [typed, shown] of [
      ['agctl config vali', 'agctl config validate '],
      ['agctl proxy cfg ba', 'agctl proxy cfg backends '],
      ['agctl serve --color al', 'agctl serve --color always '],
      ['agctl connect cu', 'agctl connect cursor '],
      ['agctl config convert some-fi', 'agctl config convert some-file.yaml '],
      ['agctl config validate --str', 'agctl config validate --strict '],
    ] as const) {
      await screen.press(typed, 'Tab');
      await screen.shows(shown.trim());
      await screen.press('C-u');
    }
    await screen.press('agctl proxy config ', 'Tab');
    expect(await screen.shows('which requests are routed where')).toContain('backends');
  });
});

test('the script of PowerShell has every command with its options', async () => {
  const { code, stdout } = await cli(['completion', 'powershell']);
  expect(code).toBe(0);
  expect(stdout).toContain("'config validate' = @{");
  expect(stdout).toContain("@('--strict', 'treat warnings as errors')");
  expect(stdout.split('{').length).toBe(stdout.split('}').length);
});

test.each(['bash', 'zsh', 'fish', 'powershell'])('the script of %s has no hidden commands', async (shell) => {
  const { stdout } = await cli(['completion', shell]);
  expect(stdout).not.toContain('gateway worker');
});

test.each([
  [[], 'which shell?\n  = help: agctl completion bash, zsh, fish or powershell'],
  [['tcsh'], 'unknown shell: tcsh'],
])('completion %j is a usage error', async (args, message) => {
  expect(await cli(['completion', ...args])).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining(message),
  });
});

const lines = (text: string): string[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .sort();
