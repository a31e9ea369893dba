// The load generator, a process of its own: a JSON argument describes one run, a JSON line returns the result.
import { readFileSync } from 'node:fs';
import { createHistogram } from 'node:perf_hooks';
import autocannon from 'autocannon';

const {
  url,
  method,
  headers,
  body,
  connections,
  seconds,
  warmup,
  pid,
  mustContain,
  uniqueIds,
  keysFile,
  sessionsFile,
} = JSON.parse(process.argv[2]);

/** Each request with the next of the keys or MCP sessions, if there are several. */
function rotating() {
  if (keysFile === undefined && sessionsFile === undefined) return {};
  const lines = readFileSync(keysFile ?? sessionsFile, 'utf8').split('\n');
  const header = (line) =>
    keysFile === undefined ? { 'mcp-session-id': line } : { authorization: `Bearer ${line}` };
  let next = 0;
  const setupRequest = (request) => {
    next = (next + 1) % lines.length;
    return { ...request, headers: { ...request.headers, ...header(lines[next]) } };
  };
  return { requests: [{ setupRequest }] };
}
// Linux counts in ticks of 10 ms (proc(5)), which is 0.25 % of a run of 4 s.
const TICK_MICROS = 10_000;

/** CPU time of the measured process in µs, user and system; children are not in it. */
function cpuMicros() {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MICROS;
}

/** Runs for `duration`; latencies in µs, because autocannon's own are whole milliseconds. */
async function run(duration) {
  const latency = createHistogram();
  let completed = 0;
  const before = cpuMicros();
  const started = performance.now();
  const instance = autocannon({
    url,
    method,
    headers,
    body,
    connections,
    duration,
    // Two requests in flight under one JSON-RPC id would be a client error, and relays may drop one of them.
    idReplacement: uniqueIds,
    ...rotating(),
    ...(mustContain === undefined ? {} : { verifyBody: (text) => text.includes(mustContain) }),
  });
  let elapsed = 0;
  let spent = 0;
  instance.on('response', (_client, _status, _bytes, milliseconds) => {
    completed += 1;
    latency.record(Math.max(1, Math.round(milliseconds * 1000)));
    elapsed = performance.now() - started;
  });
  const { non2xx, errors, timeouts, mismatches } = await instance;
  spent = cpuMicros() - before;
  return {
    rate: completed / (elapsed / 1000),
    cpu: spent / completed,
    busy: spent / (elapsed * 1000),
    p50: latency.percentile(50),
    p99: latency.percentile(99),
    p999: latency.percentile(99.9),
    max: latency.max,
    failed: non2xx + errors + timeouts + mismatches,
  };
}

if (warmup > 0) await run(warmup);
console.log(JSON.stringify(await run(seconds)));
