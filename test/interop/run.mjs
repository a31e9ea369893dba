// npm run test:interop [-- suite …]
// Tests against other people's software that is too big for `npm test`, and tests that wait for minutes. Exits 70 when
// something could not be run at all, and says what and why.
//
// A suite is a folder with tests and a `suite.mjs`: `missing()` says in words what it lacks on this machine,
// `start()` resolves to `{ env, stop }` around its tests, and to `within`, a command to run them with, where it has one.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const here = import.meta.dirname;
const all = readdirSync(here).filter((name) => existsSync(join(here, name, 'suite.mjs')));

/** Runs the test files of one folder; resolves to the exit code. */
async function runTests(folder, env, within = []) {
  const [file, ...args] = [...within, 'vitest', 'run', folder];
  const child = spawn(file, args, {
    stdio: 'inherit',
    env: { ...process.env, AGCTL_INTEROP: '1', ...env },
  });
  const [code] = await once(child, 'exit');
  return code ?? 1;
}

async function runSuite(name) {
  const suite = await import(join(here, name, 'suite.mjs'));
  const reason = suite.missing();
  if (reason !== undefined) {
    console.error(`SKIPPED: ${name}: ${reason}. NOTHING was tested against it.`);
    return 70;
  }
  const started = performance.now();
  const { env, stop, within } = await suite.start();
  console.error(`${name} is ready (${((performance.now() - started) / 1000).toFixed(0)} s)`);
  // What it started may be in a group of its own, which Ctrl-C does not reach.
  const interrupted = () => stop().finally(() => process.exit(130));
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, interrupted);
  try {
    return await runTests(`test/interop/${name}/`, env, within);
  } finally {
    await stop();
    for (const signal of ['SIGINT', 'SIGTERM']) process.off(signal, interrupted);
  }
}

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !all.includes(name));
if (unknown.length > 0) {
  console.error(`there is no suite ${unknown.join(', ')}; there are: ${all.join(', ')}`);
  process.exit(2);
}
const codes = [];
for (const name of wanted.length > 0 ? wanted : all) {
  const code = await runSuite(name).catch((error) => {
    console.error(`SKIPPED: ${name}: ${error.message}`);
    return 70;
  });
  codes.push([name, code]);
}
for (const [name, code] of codes) {
  const outcome = code === 0 ? 'passed' : code === 70 ? 'SKIPPED' : `FAILED (${code})`;
  console.error(`${name}: ${outcome}`);
}
const failed = codes.find(([, code]) => code !== 0 && code !== 70);
process.exitCode = failed?.[1] ?? (codes.some(([, code]) => code === 70) ? 70 : 0);
