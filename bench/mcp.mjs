// npm run bench mcp -- [--rounds 3] [--seconds 4] [--connections 16] [--bin NAME=PATH ...] [--modern]
// tools/call over one shared session to one stdio server, which runs on the core of the measured process. With --modern,
// the gateway is also measured with requests of revision 2026-07-28 (its server has sessions, so they are converted).
// supergateway is installed from the npm registry when it is first needed.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { peerScript } from './harness/npm-peers.mjs';
import {
  freePort,
  gatewayBuilds,
  pinSelf,
  scratchFolder,
  start,
  startGateway,
  startPeer,
} from './harness/processes.mjs';
import { compare, conditions } from './harness/report.mjs';
import { interleave } from './harness/rounds.mjs';
import { mcpConfig, mcpRequest, modernRequest, openSession, stdioServer } from './mcp-case.mjs';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '4' },
    connections: { type: 'string', default: '16' },
    bin: { type: 'string', multiple: true },
    modern: { type: 'boolean', default: false },
  },
});
const settings = {
  rounds: Number(values.rounds),
  seconds: Number(values.seconds),
  connections: Number(values.connections),
};
const folder = scratchFolder();
const running = [];
const keep = async (starting) => {
  const process = await starting;
  running.push(process);
  return process;
};
async function startAll() {
  const relay = await keep(startPeer('mcp-relay.mjs', [stdioServer]));
  const started = [{ name: 'bare relay', ...relay, path: '/' }];
  const file = join(folder, 'gateway.yaml');
  writeFileSync(file, JSON.stringify(mcpConfig()));
  for (const [build, bin] of await gatewayBuilds(values.bin))
    started.push({ name: build, ...(await keep(startGateway(bin, file))), path: '/mcp' });
  const supergateway = await startSupergateway();
  return supergateway === undefined ? started : [...started, supergateway];
}

async function startSupergateway() {
  const program = peerScript('supergateway');
  if (program === undefined) return undefined;
  const port = await freePort();
  const args = [
    '--stdio',
    `${process.execPath} ${stdioServer}`,
    '--outputTransport',
    'streamableHttp',
    '--stateful',
  ];
  const options = ['--port', String(port), '--logLevel', 'none'];
  const started = await keep(start(process.execPath, [program, ...args, ...options], { ready: port }));
  return { name: 'supergateway', ...started, path: '/mcp' };
}

try {
  pinSelf();
  const cases = [];
  for (const { name, port, path, pid } of await startAll()) {
    const session = await openSession(name, port, path);
    cases.push({ name, request: { ...mcpRequest(session, settings.connections), pid } });
    if (values.modern && path === '/mcp' && name !== 'supergateway')
      cases.push({
        name: `${name}, 2026-07-28`,
        request: { ...modernRequest(port, settings.connections), pid },
      });
  }
  console.log(
    conditions(settings, 'MCP tools/call over stdio, one shared session, the server on the same core'),
  );
  const figures = await interleave(cases, settings);
  console.log(compare(cases, figures));
} finally {
  await Promise.all(running.map((process) => process.stop()));
}
