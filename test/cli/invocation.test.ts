import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Writable } from 'node:stream';
import { expect, test } from 'vitest';
import { asCalled, invocation, startCommand } from '../../src/cli/invocation.ts';
import { createProgram } from '../../src/cli/program.ts';
import { PACKAGE_NAME, VERSION } from '../../src/core/version.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { AGCTL } from '../kit/process.ts';

const NODE_FOLDER = dirname(process.execPath);

/** A folder with an installation of this program (a link to it), and what else a test needs. */
async function machine() {
  const folder = await temporaryFolder();
  const at = (path: string): string => join(folder.path, path);
  const file = (path: string, text: string): string => {
    mkdirSync(dirname(at(path)), { recursive: true });
    writeFileSync(at(path), text, { mode: 0o755 });
    return at(path);
  };
  const link = (path: string, target = AGCTL): string => {
    mkdirSync(dirname(at(path)), { recursive: true });
    symlinkSync(target, at(path));
    return at(path);
  };
  /** What a shell prints for a line, in a subfolder. */
  const shell = (line: string, { cwd = '.', PATH = '' } = {}): Promise<string> =>
    new Promise((resolve) => {
      const env = { PATH: `${PATH}:${NODE_FOLDER}:/usr/bin:/bin`, HOME: folder.path };
      mkdirSync(at(cwd), { recursive: true });
      execFile('bash', ['-c', line], { cwd: at(cwd), env }, (_error, stdout, stderr) =>
        resolve(stdout + stderr),
      );
    });
  return { at, file, link, shell, [Symbol.asyncDispose]: folder[Symbol.asyncDispose] };
}

const INIT = 'init --yes --with llm';

test('commands that are printed call agctl if that is on the PATH and is this program', async () => {
  await using mine = await machine();
  mine.link('global/agctl');
  const PATH = mine.at('global');
  const printed = await mine.shell(`agctl ${INIT}`, { cwd: 'a', PATH });
  expect(printed).toContain('\n  agctl serve\n  agctl connect claude');
  expect(readFileSync(mine.at('a/gateway.yaml'), 'utf8')).toContain('`agctl config explain KEY`');
  // A script that starts it, such as that of a package manager.
  mine.file('wrapped/agctl', `#!/bin/sh\nexec node ${AGCTL} "$@"\n`);
  expect(await mine.shell('agctl serve', { PATH: mine.at('wrapped') })).toContain('`agctl init`');
});

test('commands that are printed name the path of this program if agctl is another program', async () => {
  await using mine = await machine();
  mine.file('global/agctl', '#!/bin/sh\necho not ours\n');
  mine.file('a/node_modules/.bin/agctl', '#!/bin/sh\necho not ours\n');
  const PATH = mine.at('global');
  const printed = await mine.shell(`node ${AGCTL} ${INIT}`, { cwd: 'a', PATH });
  expect(printed).toContain(`\n  node ${AGCTL} serve\n`);
  expect(readFileSync(mine.at('a/gateway.yaml'), 'utf8')).toContain(`\`node ${AGCTL} config explain KEY\``);
  expect(readFileSync(mine.at('a/gateway.yaml'), 'utf8')).not.toMatch(/`agctl (?!init`)|npx/);
});

test('commands that are printed repeat the path that was used, below the folder that they are for', async () => {
  await using mine = await machine();
  mine.link('tools/bin/agctl.js');
  expect(await mine.shell(`node tools/bin/agctl.js serve`)).toContain('`node tools/bin/agctl.js init`');
  expect(await mine.shell(`./tools/bin/agctl.js serve`)).toContain('`./tools/bin/agctl.js init`');
  expect(await mine.shell(`tools/bin/agctl.js serve`)).toContain('`./tools/bin/agctl.js init`');
  const printed = await mine.shell(`node tools/bin/agctl.js ${INIT} new`);
  expect(printed).toContain(`\n  cd new\n  node ${mine.at('tools/bin/agctl.js')} serve\n`);
  mine.link('my tools/agctl.js');
  expect(await mine.shell(`node 'my tools/agctl.js' serve`)).toContain("`node 'my tools/agctl.js' init`");
});

test('commands that are printed use npx in a folder that has this program installed, and only there', async () => {
  await using mine = await machine();
  const installed = mine.link('project/node_modules/.bin/agctl');
  const PATH = mine.at('project/node_modules/.bin');
  expect(await mine.shell(`agctl ${INIT}`, { cwd: 'project/sub', PATH })).toContain('\n  npx agctl serve\n');
  expect(await mine.shell(`${installed} serve`, { cwd: 'other' })).toContain(`\`${installed} init\``);
});

test('what npx ran from a file, an address or the registry is run again as exactly that', async () => {
  await using mine = await machine();
  const start = (path: string, dependency: string) => {
    mine.file(`${path}/package.json`, JSON.stringify({ dependencies: { [PACKAGE_NAME]: dependency } }));
    const program = mine.file(`${path}/node_modules/${PACKAGE_NAME}/bin/agctl.js`, '');
    const bin = mine.link(`${path}/node_modules/.bin/agctl`, program);
    return { env: { PATH: dirname(bin), npm_command: 'exec' }, cwd: mine.at('.'), script: bin, program };
  };
  const fromFile = start('.npm/_npx/1', 'file:../../../my.tgz');
  expect(invocation(fromFile, mine.at('.'))).toBe(`npx -y file:${mine.at('my.tgz')}`);
  expect(startCommand(fromFile)).toEqual(['npx', '-y', `file:${mine.at('my.tgz')}`]);
  const url = 'https://example.com/agctl.tgz';
  expect(invocation(start('.npm/_npx/2', url), mine.at('.'))).toBe(`npx -y ${url}`);
  const ofRegistry = start('.npm/_npx/3', '^0.0.1');
  expect(startCommand(ofRegistry)).toEqual(['npx', '-y', `${PACKAGE_NAME}@${VERSION}`]);
  const program = '/opt/agctl/bin/agctl.js';
  expect(startCommand({ env: {}, cwd: '/', program })).toEqual([process.execPath, program]);
});

test('help, errors and reports of checks name the command as it was called', async () => {
  await using mine = await machine();
  mine.link('tools/bin/agctl.js');
  const called = 'node tools/bin/agctl.js';
  const prints = async (args: string): Promise<string> => await mine.shell(`${called} ${args}`);
  expect(await prints('--help')).toContain(`Usage: ${called} [options]`);
  expect(await prints('connect --help')).toContain(`\n  ${called} connect claude --write\n`);
  expect(await prints('nothing')).toContain(`(${called} --help lists all commands)`);
  expect(await prints('config explain AGW0302')).toContain(`${called} config validate shows where`);
  mine.file('gateway.yaml', 'model_list: []\n');
  expect(await prints('config validate')).toContain(`\`${called} init --from`);
});

test('each command of the program is renamed in texts as it was called, and other sentences are not', () => {
  const sink = new Writable({ write: (_chunk, _encoding, done) => done() });
  const context = { stdout: sink, stderr: sink, env: {}, cwd: '/', invocation: () => 'node x.js' };
  const program = createProgram(context, () => undefined);
  const names = program
    .createHelp()
    .visibleCommands(program)
    .map((command) => command.name());
  expect(names.length).toBeGreaterThan(15);
  for (const name of names.map((each) => (each === 'gateway' ? 'gateway serve' : each)))
    expect(asCalled(`run agctl ${name}, or`, context)).toBe(`run node x.js ${name}, or`);
  for (const text of ['is it an agctl gateway of this version?', 'agctl connects directly', 'x/agctl serve'])
    expect(asCalled(text, context)).toBe(text);
});
