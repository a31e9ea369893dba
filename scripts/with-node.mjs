// Runs a script after installing its dependencies, on the Node.js of `scripts/parts/node`, or on that of the machine if it
// is as new. This file runs on Node.js 20 or newer. With AGCTL_NODE=installed it uses that of the machine in any case.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { install, installPart, link, root } from './install.mjs';

/** Whether scripts run on the executable of this process. */
function runsOnThis() {
  if (process.env.AGCTL_NODE === 'installed') return true;
  const { dependencies } = JSON.parse(readFileSync(join(root, 'scripts/parts/node/package.json'), 'utf8'));
  return parseInt(process.versions.node, 10) >= parseInt(dependencies.node, 10);
}

// At the same time: npm waits for the network, and for one processor while it unpacks.
const [part] = await Promise.all([runsOnThis() ? undefined : installPart('node'), install()]);
const isWindows = process.platform === 'win32';
const node = part === undefined ? process.execPath : join(part, 'node/bin', isWindows ? 'node.exe' : 'node');
// What packages put there begins with `#!/usr/bin/env node`.
if (part !== undefined && !isWindows) link(node, '.bin/node');
const [script, ...args] = process.argv.slice(2);
const child = spawn(node, [join(root, script), ...args], {
  stdio: 'inherit',
  cwd: root,
  env: {
    ...process.env,
    PATH: [join(root, 'node_modules/.bin'), dirname(node), process.env.PATH].join(delimiter),
  },
});
// The terminal sends Ctrl-C to both; the child decides when it is done.
process.on('SIGINT', () => undefined);
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
// npm passes SIGTERM on to the shell between it and this process, and that ends without passing it on.
const parent = process.ppid;
const watch = setInterval(() => {
  if (process.ppid === parent) return;
  clearInterval(watch);
  child.kill('SIGTERM');
}, 500);
watch.unref();
child.on('exit', (code, signal) => {
  process.exitCode = signal === null ? (code ?? 1) : 1;
});
