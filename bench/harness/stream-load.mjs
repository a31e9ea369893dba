// The load generator for streams, a process of its own like `load.mjs`: each connection requests one stream after
// another. A JSON argument describes the run, a JSON line returns the result. Uses bare sockets, because it must not
// cost more than what it measures.
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { createHistogram } from 'node:perf_hooks';
import { ChunkedReader } from './chunked.mjs';

const { url, headers, body, connections, seconds, warmup, pid, frames, frame } = JSON.parse(process.argv[2]);
const TICK_MICROS = 10_000;
const { hostname, port, pathname } = new URL(url);
const fields = { host: `${hostname}:${port}`, 'content-length': Buffer.byteLength(body), ...headers };
const request = `POST ${pathname} HTTP/1.1\r\n${Object.entries(fields)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('')}\r\n${body}`;

function cpuMicros() {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const columns = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(columns[11]) + Number(columns[12])) * TICK_MICROS;
}

/** One connection until the time is over; ends after a complete stream. */
function worker(until, seen) {
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname).setNoDelay(true).setEncoding('latin1');
    let rest = '';
    let counted = 0;
    let asked = 0;
    let last = 0;
    const ask = () => {
      rest = '';
      counted = 0;
      asked = performance.now();
      socket.write(request);
    };
    const leave = () => {
      socket.removeAllListeners('end').destroy();
      resolve();
    };
    const fail = () => {
      seen.failed += 1;
      leave();
    };
    const onText = (text) => {
      const events = (rest + text).split('\n\n');
      rest = events.pop();
      const now = performance.now();
      if (counted > 0 && events.length > 0) seen.gap.record(Math.max(1, Math.round((now - last) * 1000)));
      if (events.length > 0) last = now;
      for (const event of events) {
        if (!event.includes(frame)) continue;
        if (counted === 0) seen.first.record(Math.max(1, Math.round((now - asked) * 1000)));
        counted += 1;
      }
    };
    const onEnd = () => {
      seen.frames += counted;
      if (counted !== frames) fail();
      else if (performance.now() < until) ask();
      else leave();
    };
    const reader = new ChunkedReader(onText, onEnd);
    socket.once('connect', ask).on('error', fail).on('end', fail);
    socket.on('data', (text) => reader.push(text));
  });
}

async function run(duration) {
  const seen = { frames: 0, failed: 0, first: createHistogram(), gap: createHistogram() };
  const before = cpuMicros();
  const started = performance.now();
  await Promise.all(Array.from({ length: connections }, () => worker(started + duration * 1000, seen)));
  const elapsed = performance.now() - started;
  const spent = cpuMicros() - before;
  return {
    rate: seen.frames / (elapsed / 1000),
    cpu: spent / seen.frames,
    busy: spent / (elapsed * 1000),
    p50: seen.first.percentile(50),
    p99: seen.first.percentile(99),
    /** Time between two reads with events of one stream. */
    gap: {
      p50: seen.gap.percentile(50),
      p99: seen.gap.percentile(99),
      p999: seen.gap.percentile(99.9),
      max: seen.gap.max,
    },
    failed: seen.failed,
  };
}

if (warmup > 0) await run(warmup);
console.log(JSON.stringify(await run(seconds)));
process.exit(0);
