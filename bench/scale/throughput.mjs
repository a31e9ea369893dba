// Rate, CPU time and latency with one process and with two workers, in rounds that alternate between them.
import { cpuMicros, ownCpuMicros } from '../harness/cpu.mjs';
import { table } from '../harness/report.mjs';
import { median, ratio } from '../harness/rounds.mjs';
import { CASES } from './cases.mjs';
import { CORE_COUNT } from './cores.mjs';
import { ScaledGateway } from './gateways.mjs';

const WORKERS = [1, 2];
const MIN_RATE = 1.4;
const MAX_CPU = 1.1;
// At first for the compiler: each process needs its share of requests, or two workers are measured with slower code than
// one process. Later only for the connections.
const FIRST_WARMUP = { requests: 40_000, step: 2, max: 40 };
const WARMUP = 1;

/** Measures one workload. Resolves to `{ text, isOk }`: rates and CPU times are only reported. */
export async function throughput(name, settings) {
  const { what, config, generator } = CASES[name];
  const { bin, folder, nginx, rounds, seconds } = settings;
  const sides = [];
  try {
    for (const workers of WORKERS) {
      const at = `127.0.0.1:${nginx.port}`;
      const gateway = await ScaledGateway.start({ bin, folder, config: config(at), workers });
      sides.push({ workers, gateway, runs: [] });
    }
    for (const side of sides) side.load = await generator({ ...settings, gateway: side.gateway });
    for (let round = 0; round < rounds; round += 1) {
      for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
        await (round === 0 ? warmUp(side) : side.load.run(WARMUP));
        side.runs.push(await measure(side, nginx, seconds));
      }
    }
    return { text: report(`${name}: ${what}`, sides), isOk: true };
  } finally {
    for (const { load, gateway } of sides) {
      load?.stop?.();
      await gateway.stop();
    }
  }
}

async function warmUp({ workers, load }) {
  const until = performance.now() + FIRST_WARMUP.max * 1000;
  for (let done = 0; done < FIRST_WARMUP.requests * workers && performance.now() < until; )
    done += (await load.run(FIRST_WARMUP.step)).completed;
}

/** One run. `others` is the CPU time per request of generator, upstream and the reader of the access log. */
async function measure({ gateway, load }, nginx, seconds) {
  const spent = () => ({
    ...gateway.cpu(),
    others:
      cpuMicros(nginx.pid) +
      gateway.serversCpu() +
      ownCpuMicros() +
      (load.pid === undefined ? 0 : cpuMicros(load.pid)),
  });
  const before = spent();
  const { completed, rate, p99 } = await load.run(seconds);
  const after = spent();
  const perRequest = (key) => (after[key] - before[key]) / completed;
  return { rate, p99, cpu: perRequest('all'), primary: perRequest('primary'), others: perRequest('others') };
}

function report(title, sides) {
  const [one, two] = sides;
  const middle = ({ runs }, key) => median(runs.map((run) => run[key]));
  const rows = sides.map((side) => {
    const busy = (middle(side, 'cpu') + middle(side, 'others')) * middle(side, 'rate');
    return [
      side.workers === 1 ? 'one process' : `${side.workers} workers`,
      middle(side, 'rate').toFixed(0),
      middle(side, 'cpu').toFixed(1),
      side.workers === 1 ? '–' : middle(side, 'primary').toFixed(1),
      middle(side, 'others').toFixed(1),
      (middle(side, 'p99') / 1000).toFixed(2),
      `${Math.round(busy / 1e4 / CORE_COUNT)} %`,
      side.gateway
        .resident()
        .map((each) => each.toFixed(0))
        .join(' + '),
    ];
  });
  const rate = ratio(two.runs, one.runs, (run) => run.rate);
  const cpu = ratio(two.runs, one.runs, (run) => run.cpu);
  const spread = one.load.workers === undefined ? [] : [sessionsOf(two)];
  return [
    title,
    '',
    table(['', 'req/s', 'CPU µs', 'of it primary', 'others CPU µs', 'p99 ms', 'cores busy', 'RSS MiB'], rows),
    '',
    ...spread,
    `rate(2)/rate(1) = ${rate.toFixed(2)} (${verdict(rate >= MIN_RATE)}: at least ${MIN_RATE})`,
    `CPU(2)/CPU(1) = ${cpu.toFixed(2)} (${verdict(cpu <= MAX_CPU)}: at most ${MAX_CPU})`,
    ...arithmetic(middle(one, 'cpu'), middle(one, 'others'), middle(two, 'cpu'), middle(two, 'others')),
  ].join('\n');
}

/**
 * What the rates can be at most, from CPU times in µs per request: `c` of the gateway, `g` of everything else. One
 * process has one core, and everything together has all of them.
 */
function arithmetic(c, g, c2, g2) {
  const one = Math.min(1 / c, CORE_COUNT / (c + g));
  const limits = `min(1/c, ${CORE_COUNT}/(c+g)) = ${perSecond(one)}/s`;
  const equal = CORE_COUNT / (c + g) / one;
  const measured = CORE_COUNT / (c2 + g2) / one;
  return [
    `bound: c = ${c.toFixed(1)} µs, g = ${g.toFixed(1)} µs: one process ${limits}; with workers that cost the same, ` +
      `${CORE_COUNT}/(c+g) = ${perSecond(CORE_COUNT / (c + g))}/s, so at most ${equal.toFixed(2)} times the rate`,
    `       g'/g = ${(g2 / g).toFixed(2)}: wrk and nginx do the same work in both cases, so this much is the machine, whose ` +
      `cores slow each other down; CPU(2)/CPU(1) without it ${(c2 / c / (g2 / g)).toFixed(2)}`,
    `       c' = ${c2.toFixed(1)} µs, g' = ${g2.toFixed(1)} µs: ${CORE_COUNT}/(c'+g') = ` +
      `${perSecond(CORE_COUNT / (c2 + g2))}/s, so at most ${measured.toFixed(2)} times the rate`,
  ];
}

const perSecond = (rate) => (rate * 1e6).toFixed(0);
const verdict = (isMet) => (isMet ? 'met' : 'NOT MET');
const sessionsOf = ({ load: { workers } }) =>
  `sessions: ${Object.entries(workers)
    .map(([worker, count]) => `${count} in worker ${worker}`)
    .join(', ')}`;
