// `npm run dev [-- ARGUMENTS]`: builds, runs the quickstart or `agctl ARGUMENTS`, and does so again after each change in
// src. Types are not checked.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, watch } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { collect, root } from './run.mjs';

/** Editors write a file in several steps, in ms. */
const SETTLE = 30;
/** Open requests of the old program get this long, in ms. */
const STOP_AFTER = 1_000;

const args = process.argv.slice(2);
/** Of the quickstart: its memory outlives a restart. */
const folder = args.length === 0 ? mkdtempSync(join(tmpdir(), 'agctl-dev-')) : undefined;
const command = folder === undefined ? ['bin/agctl.js', ...args] : ['scripts/quickstart.mjs', folder];

let running;
/** What the next build builds: build-program, build-web or both. */
let wanted = new Set(['program', 'web']);
/** What the last build failed to build: the next one builds it again. */
let failed = [];
let isBuilding = false;
let isStopping = false;

watch(join(root, 'src'), { recursive: true }, (_event, file) => {
  const [area] = String(file).split(sep);
  if (area !== 'web') wanted.add('program');
  // The web pages use modules of src/core.
  if (area === 'web' || area === 'core') wanted.add('web');
  void build();
});
for (const signal of ['SIGINT', 'SIGTERM'])
  process.on(signal, async () => {
    isStopping = true;
    await stop();
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    process.exit();
  });
await build();

async function build() {
  if (isBuilding) return;
  isBuilding = true;
  while (wanted.size > 0 && !isStopping) {
    await sleep(SETTLE);
    const parts = [...new Set([...wanted, ...failed])];
    wanted = new Set();
    const statuses = await Promise.all(
      parts.map((part) => collect(process.execPath, [`scripts/build-${part}.mjs`])),
    );
    failed = parts.filter((_part, index) => statuses[index] !== 0);
    if (failed.length === 0) await restart();
    else process.stderr.write('the build failed; waiting for a change in src\n');
  }
  isBuilding = false;
}

async function restart() {
  await stop();
  if (!isStopping) running = spawn(process.execPath, command, { cwd: root, stdio: 'inherit' });
}

/** Ends the program: a second signal ends it at once. */
async function stop() {
  const child = running;
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill();
  const timer = setTimeout(() => child.kill(), STOP_AFTER);
  await ended;
  clearTimeout(timer);
}
