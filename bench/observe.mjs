// npm run bench observe -- [--rounds 3] [--seconds 4] [--connections 32]
// Plain proxying with the access log on and off, as text and JSON, without the admin server, and with one request in ten
// traced. Metrics are always on; everything else is the default.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { number, readOptions } from './harness/options.mjs';
import {
  gatewayBuilds,
  LOAD_CORE,
  pinSelf,
  scratchFolder,
  startGateway,
  startPeer,
} from './harness/processes.mjs';
import { compare, conditions } from './harness/report.mjs';
import { interleave } from './harness/rounds.mjs';
import { GET, gatewayConfig } from './http-cases.mjs';

const settings = readOptions({ rounds: number(3), seconds: number(4, 0.1), connections: number(32) });

// A collector that does not exist: spans are created, queued and dropped, which is the cost for requests.
const TRACING = { otlpEndpoint: 'http://127.0.0.1:1', randomSampling: 0.1 };
const CASES = {
  'no log': { logging: { level: 'info,request=off' } },
  'text log': {},
  'JSON log': { logging: { format: 'json' } },
  'text log, no admin server': { adminAddr: 'off' },
  'text log, a tenth traced': { tracing: TRACING },
};

const folder = scratchFolder();
const running = [];
try {
  pinSelf();
  const upstream = await startPeer('upstream.mjs', [], LOAD_CORE);
  running.push(upstream);
  const [[, bin]] = await gatewayBuilds([]);
  const cases = [];
  for (const [name, config] of Object.entries(CASES)) {
    const base = gatewayConfig(`127.0.0.1:${upstream.port}`, []);
    const file = join(folder, `${cases.length}.yaml`);
    writeFileSync(file, JSON.stringify({ ...base, config: { ...base.config, ...config } }));
    const gateway = await startGateway(bin, file);
    running.push(gateway);
    const url = `http://127.0.0.1:${gateway.port}/v1/items`;
    cases.push({ name, request: { ...GET, url, pid: gateway.pid, connections: settings.connections } });
  }
  process.stdout.write(
    `${conditions(settings, 'GET, 600-byte JSON reply, log on a drained pipe, metrics on')}\n`,
  );
  const figures = await interleave(cases, settings);
  process.stdout.write(`${compare(cases, figures)}\n`);
} finally {
  await Promise.all(running.map((process) => process.stop()));
}
