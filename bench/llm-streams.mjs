// npm run bench llm-streams -- [--streams 300] [--rate 20] [--minutes 5] [--bin PATH]
// Many streams at the pace of a model. Every event carries an id of its request and a number: none may be lost,
// duplicated, reordered or sent to another client. The memory of the gateway must not grow: V8 delays full collections,
// so the relevant figure is the minimum of each third, after such a collection.
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createHistogram } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { ChunkedReader } from './harness/chunked.mjs';
import {
  gatewayBuilds,
  LOAD_CORE,
  pinSelf,
  residentMiB,
  scratchFolder,
  startGateway,
  startPeer,
} from './harness/processes.mjs';
import { table } from './harness/report.mjs';
import { llmConfig } from './llm-cases.mjs';

const { values } = parseArgs({
  options: {
    streams: { type: 'string', default: '300' },
    rate: { type: 'string', default: '20' },
    minutes: { type: 'string', default: '5' },
    bin: { type: 'string' },
  },
});
const streams = Number(values.streams);
const rate = Number(values.rate);
const minutes = Number(values.minutes);
/** A stream lasts 15 s, as long responses do; each connection then requests another. */
const FRAMES = 15 * rate;

const seen = { events: 0, finished: 0, faults: [], gap: createHistogram(), first: createHistogram() };

/** One client: one stream after another until the time is over. */
function client(port, id, until) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1').setNoDelay(true).setEncoding('utf8');
    let round = 0;
    let mark = '';
    let next = 0;
    let rest = '';
    let asked = 0;
    let last = 0;
    const fault = (what) => {
      if (seen.faults.length < 20) seen.faults.push(`${mark}: ${what}`);
      else seen.faults.length += 1;
    };
    const ask = () => {
      mark = `client${id}-${round++}`;
      next = 0;
      asked = performance.now();
      const messages = [{ role: 'user', content: 'count' }];
      const body = JSON.stringify({ model: 'bench', stream: true, user: mark, messages });
      socket.write(
        `POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\nuser-agent: bench/1.0\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      );
    };
    const onEvent = (event) => {
      const found = /"content":" ([^"]+):(\d+)"/.exec(event);
      if (found === null) return;
      const now = performance.now();
      if (next === 0) seen.first.record(Math.max(1, Math.round((now - asked) * 1000)));
      else seen.gap.record(Math.max(1, Math.round((now - last) * 1000)));
      last = now;
      seen.events += 1;
      if (found[1] !== mark) fault(`got an event of ${found[1]}`);
      else if (Number(found[2]) !== next) fault(`got ${found[2]}, expected ${next}`);
      next = Number(found[2]) + 1;
    };
    const reader = new ChunkedReader(
      (text) => {
        const events = (rest + text).split('\n\n');
        rest = events.pop();
        events.forEach(onEvent);
      },
      () => {
        if (next !== FRAMES) fault(`ended after ${next} events`);
        else seen.finished += 1;
        if (performance.now() < until) return ask();
        socket.removeAllListeners('close').destroy();
        resolve();
      },
    );
    socket.on('data', (text) => reader.push(text));
    socket.once('connect', ask).on('error', (error) => fault(error.message));
    socket.on('close', () => {
      fault('the connection was closed');
      resolve();
    });
  });
}

function cpuSeconds(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

pinSelf();
const folder = scratchFolder();
const mock = await startPeer('llm-upstream.mjs', ['--numbered', String(FRAMES), String(rate)], LOAD_CORE);
const file = join(folder, 'gateway.yaml');
writeFileSync(file, JSON.stringify(llmConfig(`127.0.0.1:${mock.port}`)));
const [[, bin]] = await gatewayBuilds(values.bin === undefined ? [] : [values.bin]);
const gateway = await startGateway(bin, file);
try {
  const samples = [];
  const sample = () => samples.push(residentMiB(gateway.pid));
  const cpu = cpuSeconds(gateway.pid);
  const started = performance.now();
  const sampling = setInterval(sample, 1_000);
  const until = started + minutes * 60_000;
  await Promise.all(Array.from({ length: streams }, (_, id) => client(gateway.port, id, until)));
  clearInterval(sampling);
  sample();
  const elapsed = (performance.now() - started) / 1000;
  const third = Math.max(1, Math.ceil(samples.length / 3));
  const range = (number) => {
    const part = samples.slice(number * third, (number + 1) * third);
    return `${Math.min(...part).toFixed(0)}–${Math.max(...part).toFixed(0)}`;
  };
  const ms = (histogram, percentile) => (histogram.percentile(percentile) / 1000).toFixed(1);
  console.log(
    table(
      ['', ''],
      [
        ['concurrent streams, events/s each, minutes', `${streams}, ${rate}, ${(elapsed / 60).toFixed(1)}`],
        ['streams finished, events', `${seen.finished}, ${seen.events}`],
        ['events lost, misdelivered or out of order', String(seen.faults.length)],
        ['first event p50, p99', `${ms(seen.first, 50)}, ${ms(seen.first, 99)} ms`],
        [
          `gap between events p50, p99 (sent each ${1000 / rate} ms)`,
          `${ms(seen.gap, 50)}, ${ms(seen.gap, 99)} ms`,
        ],
        [
          'CPU of the gateway per event',
          `${(((cpuSeconds(gateway.pid) - cpu) / seen.events) * 1e6).toFixed(1)} µs`,
        ],
        [
          'memory of the gateway, minimum and maximum in each third',
          `${range(0)}, ${range(1)}, ${range(2)} MiB`,
        ],
      ],
    ),
  );
  if (seen.faults.length > 0) {
    console.error(seen.faults.slice(0, 20).join('\n'));
    process.exitCode = 1;
  }
} finally {
  await Promise.all([gateway.stop(), mock.stop()]);
}
