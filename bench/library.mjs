// npm run bench library [-- --rounds 5] [--requests 20000]
// CPU time of a request in a program that has the gateway in its process: handed to `handle`; sent to its port by `fetch` in the same
// process; and received on its port from another process. The first two include what the program does itself, making requests and
// reading responses, which is measured with a handler that answers at once. Measures the built package.
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';
import { table } from './harness/report.mjs';
import { median } from './harness/rounds.mjs';

const CONNECTIONS = 32;
const CHAT = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'word '.repeat(50) }] });
const COMPLETION = JSON.stringify({
  id: 'x',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'word '.repeat(50) }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 50, completion_tokens: 50, total_tokens: 100 },
});

const CASES = {
  GET: {
    path: '/a',
    backend: (host) => ({ host }),
    init: {},
  },
  'chat completion': {
    path: '/v1/chat/completions',
    backend: (host) => ({
      ai: {
        name: 'bench',
        provider: { openAI: {} },
        hostOverride: host,
        policies: { backendAuth: { key: 'key' } },
      },
    }),
    init: { method: 'POST', headers: { 'content-type': 'application/json' }, body: CHAT },
  },
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '5' }, requests: { type: 'string', default: '20000' } },
});
const requests = Number(values.requests);
const [role, ...args] = positionals;
if (role === undefined) await main();
else await { upstream, port, fetched, handle, nothing }[role](...args);

async function main() {
  const origin = await started('upstream');
  const rows = [];
  for (const name of Object.keys(CASES)) {
    const figures = { handle: [], fetched: [], nothing: [], port: [] };
    for (let round = 0; round < Number(values.rounds); round += 1)
      for (const way of Object.keys(figures)) figures[way].push(await measured(way, name, origin.line));
    const micros = Object.values(figures).map(median);
    const [handle, fetched, own, port] = micros;
    const ratios = [handle / fetched, (handle - own) / port];
    rows.push([name, ...micros.map((each) => each.toFixed(1)), ...ratios.map((each) => each.toFixed(2))]);
  }
  origin.child.kill();
  process.stdout.write(
    `Node ${process.versions.node}, c=${CONNECTIONS}, median of ${values.rounds} interleaved rounds of ${requests} requests, CPU µs\n\n`,
  );
  process.stdout.write(
    `${table(['', 'handle', 'fetch', 'own part', 'port', 'handle / fetch', '(handle - own) / port'], rows)}\n`,
  );
}

/** Starts this file in another role. Resolves to its first line. */
function started(...words) {
  const child = spawn(process.execPath, [import.meta.filename, ...words, '--requests', String(requests)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`${words.join(' ')} ended with ${code}`)));
    child.stdout.once('data', (line) => resolve({ child, line: String(line).trim() }));
  });
}

async function measured(way, name, upstreamAddress) {
  const { child, line } = await started(way, name, upstreamAddress);
  child.kill();
  return Number(line);
}

function upstream() {
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      response.setHeader('content-type', 'application/json');
      response.end(request.method === 'GET' ? '{"ok":true}' : COMPLETION);
    });
  });
  server.listen(0, '127.0.0.1', () => console.log(`127.0.0.1:${server.address().port}`));
}

async function gatewayFor(name, address, listen) {
  const { createGateway } = await import('../dist/cli/library.js');
  const routes = [{ backends: [CASES[name].backend(address)] }];
  return createGateway({ gateways: { default: { port: 0, address: '127.0.0.1', routes } } }, { listen });
}

async function port(name, address) {
  const gateway = await gatewayFor(name, address, true);
  const { path, init } = CASES[name];
  // In another process: its work is not that of the gateway.
  const load = (amount) =>
    new Promise((resolve, reject) => {
      const options = JSON.stringify({ url: gateway.url + path, ...init, connections: CONNECTIONS, amount });
      const script = `require(${JSON.stringify(import.meta.resolve('autocannon').replace('file://', ''))})(${options}, (error, { '2xx': good }) => process.exit(good === ${amount} ? 0 : 1))`;
      const child = spawn(process.execPath, ['-e', script], { stdio: 'inherit' });
      child.on('exit', (code) => (code === 0 ? resolve() : reject(new Error('not every request succeeded'))));
    });
  await print(load);
}

async function handle(name, address) {
  const gateway = await gatewayFor(name, address, false);
  await print((amount) => drive(name, amount, (request) => gateway.handle(request)));
}

async function fetched(name, address) {
  const gateway = await gatewayFor(name, address, true);
  await print((amount) =>
    drive(name, amount, (request) =>
      fetch(new Request(request.url.replace('http://localhost', gateway.url), request)),
    ),
  );
}

async function nothing(name) {
  const body = name === 'GET' ? '{"ok":true}' : COMPLETION;
  const headers = { 'content-type': 'application/json' };
  await print((amount) => drive(name, amount, async () => new Response(body, { headers })));
}

async function drive(name, amount, answer) {
  const { path, init } = CASES[name];
  let left = amount;
  const one = async () => {
    const response = await answer(new Request(`http://localhost${path}`, init));
    if (!response.ok) throw new Error(await response.text());
    await response.text();
  };
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      while (left-- > 0) await one();
    }),
  );
}

/** Prints the CPU time of a request in this process. */
async function print(load) {
  await load(Math.ceil(requests / 4));
  const before = process.cpuUsage();
  await load(requests);
  const { user, system } = process.cpuUsage(before);
  console.log((user + system) / requests);
}
