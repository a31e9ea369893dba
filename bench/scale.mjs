// npm run bench scale -- [--part throughput,connections,limit,faults,kinds] [--case http,llm,mcp] [--rounds 5] [--seconds 4]
//   [--connections 32] [--sessions 16] [--total 10000] [--idle-kills 6] [--bin PATH]
// A gateway in one process and one with two workers (`config.workers`), on two cores that they share with wrk, nginx and
// the MCP servers. Exits with code 1 if connections are divided unevenly, a limit is not exact, or the end of a worker
// costs requests of the others; rates and CPU times are only reported.
import { parseArgs } from 'node:util';
import { gatewayBuilds, isInstalled, pinSelf, scratchFolder } from './harness/processes.mjs';
import { CASES } from './scale/cases.mjs';
import { connections } from './scale/connections.mjs';
import { CORES } from './scale/cores.mjs';
import { exactLimit } from './scale/exact-limit.mjs';
import { faults } from './scale/faults.mjs';
import { startNginx } from './scale/nginx.mjs';
import { processKinds } from './scale/process-kinds.mjs';
import { throughput } from './scale/throughput.mjs';

const { values } = parseArgs({
  options: {
    part: { type: 'string', default: 'throughput,connections,limit,faults,kinds' },
    case: { type: 'string', default: Object.keys(CASES).join() },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '4' },
    connections: { type: 'string', default: '32' },
    sessions: { type: 'string', default: '16' },
    total: { type: 'string', default: '10000' },
    'idle-kills': { type: 'string', default: '6' },
    bin: { type: 'string' },
  },
});

const PACKAGES = { wrk: 'wrk', nginx: 'nginx-light' };
const missing = Object.entries(PACKAGES)
  .filter(([command, name]) => !isInstalled(command, `apt-get install -y ${name}`))
  .map(([command]) => command);

/** The steps of each part; a step resolves to `{ text, isOk }`. */
const PARTS = {
  throughput: values.case.split(',').map((name) => (settings) => throughput(name, settings)),
  connections: [connections],
  limit: [exactLimit],
  faults: [faults],
  kinds: [processKinds],
};
const NEEDS = {
  throughput: ['wrk', 'nginx'],
  connections: ['nginx'],
  limit: [],
  faults: ['nginx'],
  kinds: ['wrk'],
};
const parts = values.part.split(',');
for (const part of parts)
  if (!Object.hasOwn(PARTS, part)) throw new Error(`--part must be some of ${Object.keys(PARTS)}`);

pinSelf(CORES);
const folder = scratchFolder();
const [[, bin]] = await gatewayBuilds(values.bin === undefined ? [] : [values.bin]);
const nginx = missing.includes('nginx') ? undefined : await startNginx(folder);
const settings = {
  bin,
  folder,
  nginx,
  rounds: Number(values.rounds),
  seconds: Number(values.seconds),
  connections: Number(values.connections),
  sessions: Number(values.sessions),
  total: Number(values.total),
  idleKills: Number(values['idle-kills']),
};
console.log(
  `c=${settings.connections}, ${settings.rounds} interleaved rounds of ${settings.seconds} s, median; ` +
    `Node ${process.versions.node}, cores ${CORES} shared by gateway, generator and upstream\n`,
);
try {
  for (const part of parts) {
    const lacking = NEEDS[part].filter((command) => missing.includes(command));
    if (lacking.length > 0) {
      console.error(`SKIPPED: '${part}', which needs ${lacking.join(' and ')}`);
      continue;
    }
    for (const step of PARTS[part]) {
      const { text, isOk } = await step(settings);
      console.log(`${text}\n`);
      if (!isOk) process.exitCode = 1;
    }
  }
} finally {
  await nginx?.stop();
}
