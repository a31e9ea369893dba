// npm run bench all -- [--rounds 3] [--seconds 2] [--bin NAME=PATH ...]
// Everything that is compared with others, in one run of about 10 minutes: capacity, latency and memory beside the bare relay,
// nginx, haproxy, Portkey and, if AGCTL_BENCH_UPSTREAM names its binary, the Rust gateway; then starts, and growth.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { number, readOptions, texts } from './harness/options.mjs';
import { gatewayBuilds, pinSelf, scratchFolder } from './harness/processes.mjs';
import { conditions, table } from './harness/report.mjs';
import { interleave } from './harness/rounds.mjs';
import { COLUMNS, rowsOf, withCase, withoutAdmin } from './latency-cases.mjs';

const { rounds, seconds, bin } = readOptions({ rounds: number(3), seconds: number(2, 0.1), bin: texts() });
const settings = { rounds, seconds, warmup: 5 };

/** What is measured with how many connections; `admin`: also without the admin server. */
const MEASURED = [
  ['get', 32, { admin: true }],
  ['get', 256],
  ['chat', 1],
  ['chat', 32, { admin: true }],
  ['chat', 256],
  ['stream', 32],
  ['translated', 32],
  ['tools', 32],
];

pinSelf();
const started = performance.now();
const folder = scratchFolder();
const builds = await gatewayBuilds(bin);
console.log(conditions({ ...settings, connections: 'see below' }, 'gateways beside a bare relay'));
const rows = [];
for (const [name, connections, { admin = false } = {}] of MEASURED) {
  const gateways = builds.flatMap(([build, program]) => [
    [build, program],
    ...(admin ? [[`${build}, no admin server`, program, withoutAdmin]] : []),
  ]);
  const measure = async (cases) => rowsOf(name, connections, cases, await interleave(cases, settings));
  rows.push(...(await withCase(name, { folder, gateways, connections, peers: true }, measure)));
}
console.log(table(COLUMNS, rows));

/** Another benchmark, in a process of its own. */
async function run(script, args) {
  console.log(`\n${script.replace('.mjs', '')}\n`);
  const file = fileURLToPath(new URL(script, import.meta.url));
  const builtBy = bin.flatMap((each) => ['--bin', each]);
  const [code] = await once(
    spawn(process.execPath, [file, ...args, ...builtBy], { stdio: 'inherit' }),
    'exit',
  );
  if (code !== 0) process.exitCode = 1;
}
await run('start.mjs', ['--rounds', '7', '--idle', '20']);
// One build: the curves of two would take as long again.
if (bin.length <= 1) await run('growth.mjs', ['--rounds', '1', '--seconds', '1', '--warmup', '4']);
console.log(`\n${((performance.now() - started) / 60_000).toFixed(1)} minutes`);
