// Load over TLS with h2load of nghttp2, which speaks HTTP/1.1 and HTTP/2: a JSON argument describes one run, a JSON line
// returns the result, as in load.mjs.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cpuMicros } from './cpu.mjs';

const { url, headers, connections, streams, protocol, seconds, warmup, pid } = JSON.parse(process.argv[2]);
const folder = mkdtempSync(join(tmpdir(), 'agctl-bench-load-'));

function run(duration) {
  const log = join(folder, 'requests.log');
  rmSync(log, { force: true });
  const before = cpuMicros(pid);
  const output = execFileSync(
    'h2load',
    [
      ...(protocol === 'h1' ? ['--h1'] : ['-m', String(streams)]),
      ...['-c', String(connections), '-D', String(duration), '--log-file', log],
      ...Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
      url,
    ],
    { encoding: 'utf8', maxBuffer: 10_000_000 },
  );
  const spent = cpuMicros(pid) - before;
  const rate = Number(/, ([\d.]+) req\/s/.exec(output)?.[1]);
  const failed = ['failed', 'errored', 'timeout'].map((kind) =>
    Number(new RegExp(`(\\d+) ${kind}`).exec(output)?.[1]),
  );
  // Each line: start, status, duration in µs.
  const took = readFileSync(log, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => Number(line.split('\t')[2]))
    .sort((a, b) => a - b);
  const at = (share) => took[Math.min(took.length - 1, Math.floor(took.length * share))];
  return {
    rate,
    cpu: spent / took.length,
    busy: spent / (duration * 1_000_000),
    p50: at(0.5),
    p99: at(0.99),
    failed: failed.reduce((sum, count) => sum + count, 0),
  };
}

try {
  if (warmup > 0) run(warmup);
  console.log(JSON.stringify(run(seconds)));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
