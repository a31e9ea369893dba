// npm run bench start [-- --rounds 15] [--idle 65] [--bin NAME=PATH]
// What it costs to start commands: CPU time (user and system) and duration of whole processes, relative to
// `node -e 0` on the same Node.js, and time until ready and resident memory of an idle `agctl serve`. `first run` has
// an empty folder for compiled code, `no cache` none. Requires a build; `--idle`: seconds until memory is read.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { gatewayBuilds, residentMiB, root, scratchFolder } from './harness/processes.mjs';
import { table } from './harness/report.mjs';
import { median } from './harness/rounds.mjs';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '15' },
    idle: { type: 'string', default: '65' },
    bin: { type: 'string', multiple: true },
  },
});
const rounds = Number(values.rounds);
const builds = await gatewayBuilds(values.bin);
const folder = scratchFolder();
const small = join(folder, 'small.yaml');
writeFileSync(
  small,
  'gateways:\n  default: { port: 0 }\nroutes:\n  - policies:\n      directResponse: { body: ok }\n',
);
const examples = readdirSync(join(root, 'examples')).filter((name) => name.endsWith('.yaml'));

/** The environment of a command whose compiled code is kept in a folder, or nowhere. */
const cachedIn = (cache) => ({ ...process.env, NODE_COMPILE_CACHE: undefined, XDG_CACHE_HOME: cache });
const warm = cachedIn(join(folder, 'warm'));
const uncached = { ...process.env, NODE_COMPILE_CACHE: undefined, NODE_DISABLE_COMPILE_CACHE: '1' };
let firstRuns = 0;

/** One row per command: `environment()` is evaluated before each run. */
const CASES = [
  ['node -e 0', ['-e', '0'], () => warm],
  ...builds.flatMap(([build, bin]) => {
    const validate = (file) => [bin, 'config', 'validate', '-f', file];
    return [
      [`${build} --version`, [bin, '--version'], () => warm],
      [`${build} config validate, small`, validate(small), () => warm],
      ...examples.map((name) => [
        `${build} config validate, ${name}`,
        validate(join(root, 'examples', name)),
        () => warm,
      ]),
      [`${build} config validate, small, no cache`, validate(small), () => uncached],
      [`${build} config validate, small, first run`, validate(small), () => firstRun()],
    ];
  }),
];

function firstRun() {
  const cache = join(folder, `first-${firstRuns++}`);
  mkdirSync(cache);
  return cachedIn(cache);
}

/** Milliseconds of CPU time, and from start to end. Node.js does not report the former for children; bash does. */
function run(args, env) {
  const script = 'TIMEFORMAT="spent %3U %3S %3R"; time "$@" > /dev/null 2>&1';
  const { stderr } = spawnSync('bash', ['-c', script, 'bash', process.execPath, ...args], {
    env,
    encoding: 'utf8',
  });
  const [, user, system, duration] = /spent (\S+) (\S+) (\S+)/
    .exec(stderr)
    .map((text) => Number(text) * 1000);
  return { cpu: user + system, duration };
}

const runs = new Map(CASES.map(([name]) => [name, []]));
// The first round fills the folder of compiled code. In turns, so that other load of the machine affects all of them.
for (let round = 0; round <= rounds; round++)
  for (const [name, args, environment] of CASES) {
    const spent = run(args, environment());
    if (round > 0) runs.get(name).push(spent);
  }

const medians = (name) => {
  const spent = runs.get(name);
  return {
    cpu: median(spent.map(({ cpu }) => cpu)),
    duration: median(spent.map(({ duration }) => duration)),
  };
};
const bare = medians('node -e 0');
console.log(`medians of ${rounds} runs; lowest CPU time in parentheses`);
console.log(
  table(
    ['', 'CPU ms', '× node', 'duration ms', '× node'],
    CASES.map(([name]) => {
      const { cpu, duration } = medians(name);
      const lowest = Math.min(...runs.get(name).map((spent) => spent.cpu));
      return [
        name,
        `${cpu.toFixed(0)} (${lowest.toFixed(0)})`,
        (cpu / bare.cpu).toFixed(2),
        duration.toFixed(0),
        (duration / bare.duration).toFixed(2),
      ];
    }),
  ),
);

/** Starts `agctl serve` with its admin server. Resolves to the ms until it is ready, and a function that stops it. */
async function serve(bin) {
  const started = performance.now();
  const child = spawn(process.execPath, [bin, 'serve', '-f', small], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...warm, ADMIN_ADDR: '127.0.0.1:0', STATS_ADDR: '127.0.0.1:0', READINESS_ADDR: '127.0.0.1:0' },
  });
  let printed = '';
  for await (const chunk of child.stderr) {
    printed += chunk;
    if (printed.includes('ready in')) break;
  }
  const ready = performance.now() - started;
  return { ready, pid: child.pid, stop: () => child.kill('SIGTERM') && once(child, 'exit') };
}

const served = await Promise.all(
  builds.map(async ([build, bin]) => {
    const times = [];
    for (let round = 0; round < 5; round++) {
      const gateway = await serve(bin);
      times.push(gateway.ready);
      await gateway.stop();
    }
    const gateway = await serve(bin);
    const before = residentMiB(gateway.pid);
    await delay(Number(values.idle) * 1000);
    const after = residentMiB(gateway.pid);
    await gateway.stop();
    return [`${build} serve`, median(times).toFixed(0), before.toFixed(1), after.toFixed(1)];
  }),
);
console.log(table(['', 'ready ms', 'RSS MiB', `after ${values.idle} s`], served));
