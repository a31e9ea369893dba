import { execFile, spawn } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { temporaryFolder } from './kit/folder.ts';
import { send } from './kit/send.ts';
import { until } from './kit/until.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

const CONFIG = `config: { adminAddr: off, statsAddr: off, readinessAddr: off }
gateways:
  default: { port: 0, address: 127.0.0.1, routes: [{ policies: { directResponse: { status: 200, body: hello } } }] }
`;

// Three builds, which a busy machine takes 10 s each for.
test('npm run dev keeps the old program when a build fails, runs the next one, and ends what it started', {
  timeout: 240_000,
}, async () => {
  await using folder = await temporaryFolder();
  for (const name of ['bin', 'package.json', 'scripts', 'src', 'tsconfig.json'])
    cpSync(join(root, name), join(folder.path, name), {
      recursive: true,
      filter: (path) => !path.includes('/scripts/parts/'),
    });
  symlinkSync(join(root, 'node_modules'), join(folder.path, 'node_modules'));
  writeFileSync(join(folder.path, 'config.yaml'), CONFIG);
  const banner = join(folder.path, 'src/cli/banner.ts');
  const original = readFileSync(banner, 'utf8');
  expect(original).toContain('ready in ');

  const dev = spawn(process.execPath, ['scripts/dev.mjs', 'serve', '-f', 'config.yaml'], {
    cwd: folder.path,
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group, which is ended as a whole if this test fails.
    detached: true,
  });
  let output = '';
  for (const stream of [dev.stdout, dev.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const ended = new Promise((resolve) => dev.once('close', (code) => resolve(code)));
  const shown = (text: string): Promise<void> => until(() => output.includes(text), 80_000);
  await shown('ready in ');
  const url = (): string => output.match(/http:\/\/127\.0\.0\.1:\d+/g)?.at(-1) as string;

  writeFileSync(banner, `${original}\nconst = 1;\n`);
  await shown('the build failed');
  expect(output).toContain('src/cli/banner.ts:');
  expect((await send(url())).text).toBe('hello');

  writeFileSync(banner, original.replace('ready in ', 'changed in '));
  await shown('changed in ');
  expect((await send(url())).text).toBe('hello');
  dev.kill('SIGINT');
  // The pipes close when the last process that has them ends.
  expect(await ended).toBe(0);
});

test('agctl of a checkout that is not built says how to build it', async () => {
  await using folder = await temporaryFolder();
  cpSync(join(root, 'bin'), join(folder.path, 'bin'), { recursive: true });
  const ran = await new Promise((resolve) =>
    execFile(process.execPath, ['bin/agctl.js', 'version'], { cwd: folder.path }, (error, stdout, stderr) =>
      resolve({ code: error?.code, stdout, stderr }),
    ),
  );
  expect(ran).toEqual({ code: 2, stdout: '', stderr: 'agctl is not built: run npm run build\n' });
});
