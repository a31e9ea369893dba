// npm run bench policies [-- --rounds 15]
// CPU time that each policy adds to a request, in µs. Runs the request flow from validation to the access-log line
// without sockets, whose cost hides what a policy adds. Each round serves a batch of requests on every route in turn;
// the result is the median of the differences within a round.
import { parseArgs } from 'node:util';
import { createLog } from '../src/core/log.ts';
import { loadConfigText } from '../src/server/config/load.ts';
import { handleRequest } from '../src/server/kernel/pipeline.ts';
import { clientOf } from '../src/server/kernel/request/client-connection.ts';
import { HeaderList } from '../src/server/kernel/request/header-list.ts';
import { RequestContext } from '../src/server/kernel/request/request-context.ts';
import { AccessLog } from '../src/server/observe/access-log.ts';
import { compileRuntime } from '../src/server/runtime/runtime.ts';
import { signingKey, token } from '../test/kit/tokens.ts';
import { table } from './harness/report.mjs';
import { median } from './harness/rounds.mjs';
import { GET, gatewayConfig, POLICY_NAMES } from './http-cases.mjs';

const BATCH = 4_000;
const { values } = parseArgs({ options: { rounds: { type: 'string', default: '15' } } });

const key = signingKey('k', 'RS256');
const ISSUER = 'https://idp.example/realms/mcp';
const HEADERS = {
  host: 'gateway.example',
  ...GET.headers,
  authorization: `Bearer ${token(key, {
    iss: ISSUER,
    aud: 'bench',
    sub: 'u1',
    exp: Math.floor(Date.now() / 1000) + 3600,
    realm_access: { roles: ['reader', 'tools'] },
  })}`,
};
const SIGN_IN = {
  mcpAuthentication: {
    mode: 'strict',
    issuer: ISSUER,
    audiences: ['bench'],
    provider: { idpx: {} },
    jwks: JSON.stringify({ keys: [key.jwk] }),
    resourceMetadata: { resource: 'http://gateway.example/mcp' },
  },
};

const quiet = createLog(
  { write: () => undefined, dropped: 0, flush: () => Promise.resolve() },
  'error',
  'text',
);
const request = {
  method: 'GET',
  url: '/v1/items',
  httpVersion: '1.1',
  httpVersionMajor: 1,
  httpVersionMinor: 1,
  headers: HEADERS,
  rawHeaders: Object.entries(HEADERS).flat(),
  socket: { remoteAddress: '127.0.0.1', remotePort: 40_000 },
  complete: true,
};

/** A compiled route whose backend answers immediately. */
function serving(config) {
  const { config: checked, source } = loadConfigText(JSON.stringify(config), 'bench.yaml', {});
  const { runtime, diagnostics } = compileRuntime({
    config: checked,
    source,
    log: quiet,
    folder: '.',
    env: {},
  });
  const errors = diagnostics.filter(({ severity }) => severity === 'error');
  if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join('\n'));
  const [gateway] = runtime.gateways;
  const [listener] = gateway.listeners;
  const backend = {
    handle: async (ctx) => {
      ctx.endpoint = '127.0.0.1:9';
      return { status: 200, headers: new HeaderList(['content-type', 'application/json']), body: '{}' };
    },
  };
  const backends = [{ weight: 1, backend, policies: [], name: 'bench' }];
  const routes = listener.routes.map((route) => ({ ...route, backends }));
  const byName = new Map(routes.map((route) => [route.name, route]));
  const router = (ctx) => byName.get(listener.router(ctx)?.name);
  const served = { ...gateway, listenerOf: () => ({ ...listener, routes, router }) };
  const lines = new AccessLog({
    sink: { write: () => undefined, dropped: 0, flush: () => Promise.resolve() },
    format: 'text',
    log: createLog({ write: () => undefined }, 'info', 'text'),
  });
  return async () => {
    const headers = new HeaderList(request.rawHeaders);
    const client = clientOf(request.socket);
    const ctx = new RequestContext(request, {}, 'default/default', headers, undefined, client);
    const reply = await handleRequest(ctx, served);
    lines.ended(ctx, reply.status, runtime.accessLog);
    if (reply.status !== 200) throw new Error(`rejected with ${reply.status}: ${ctx.errorDetail}`);
  };
}

async function timed(serve) {
  const before = process.cpuUsage();
  for (let count = 0; count < BATCH; count += 1) await serve();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / BATCH;
}

function withSignIn() {
  const config = gatewayConfig('127.0.0.1:9', []);
  config.gateways.default.routes[0].policies = SIGN_IN;
  return config;
}

const cases = [
  ['none', gatewayConfig('127.0.0.1:9', [])],
  ...POLICY_NAMES.map((name) => [name, gatewayConfig('127.0.0.1:9', [name])]),
  ['mcpAuthentication, remembered token', withSignIn()],
].map(([name, config]) => ({ name, serve: serving(config), times: [] }));

for (let round = -3; round < Number(values.rounds); round += 1) {
  for (const { serve, times } of cases) {
    const time = await timed(serve);
    if (round >= 0) times.push(time);
  }
}
const [{ times: plain }] = cases;
console.log(
  `Node ${process.versions.node}, median of ${values.rounds} rounds of ${BATCH} requests without sockets\n`,
);
console.log(
  table(
    ['policy', 'µs of a request', 'µs added'],
    cases.map(({ name, times }) => [
      name,
      median(times).toFixed(1),
      median(times.map((time, round) => time - plain[round])).toFixed(1),
    ]),
  ),
);
process.exit(0);
