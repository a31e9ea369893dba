import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cli } from '../../kit/cli.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { type Idp, startIdp } from '../../kit/idp.ts';
import { openSession } from '../../kit/mcp.ts';
import { proxyGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { specifiedGateway } from '../../kit/sign-in.ts';
import { type TraceServer, traceServer } from '../../kit/trace.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';
import { verifies } from '../../kit/verifies.ts';

// Real gateways: the one of the specification, with sign-in and an authorization rule, in front of a stdio server.

let idp: Idp;
let gate: TestGateway;
let server: TraceServer;
let bearer: Record<string, string>;
beforeAll(async () => {
  idp = await startIdp();
  gate = await specifiedGateway(idp.issuer, {
    policies: { cors: { allowOrigins: ['*'] }, authorization: { rules: ['jwt.sub == "ann"'] } },
  });
  server = await traceServer(gate.running);
  bearer = { authorization: `Bearer ${idp.token({ sub: 'ann' })}` };
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await gate.close();
  await idp.upstream.close();
});

async function traced(args: readonly string[], act: () => Promise<unknown>) {
  const live = { stdout: '', stderr: '' };
  const ran = cli(
    [
      'proxy',
      'trace',
      '--admin',
      `127.0.0.1:${server.port}`,
      ...(args.includes('--match') ? [] : ['--match', 'request.method == "POST"']),
      ...args,
    ],
    { live },
  );
  await until(() => live.stderr.includes('waiting') || gate.running.traceSubscribers.active);
  await act();
  return ran;
}

verifies(
  ['gateway.agctl.trace.parts'],
  'the trace of a tool call shows route, policies, expression, backend and status',
  async () => {
    const session = await openSession(`${gate.url}/mcp`, bearer);
    const { code, stdout, stderr } = await traced([], () =>
      session.request('tools/call', { name: 'echo', arguments: { text: 'hi' } }),
    );
    expect([code, stderr]).toEqual([0, expect.stringContaining('waiting')]);
    expect(stdout).toMatch(/ request +POST \/mcp .*from 127\.0\.0\.1:\d+\n/);
    expect(stdout).toMatch(/ route +selected \S+ \(1 evaluated\)/);
    expect(stdout).toMatch(/ cors +skipped: /);
    expect(stdout).toMatch(/ mcpAuthentication +\S/);
    expect(stdout).toMatch(/ cel +jwt\.sub == "ann" => true/);
    expect(stdout).toMatch(/ authorization +allowed/);
    expect(stdout).toMatch(/ backend .*stdio:one/);
    expect(stdout).toMatch(/ done +200/);
    expect(stdout).not.toContain(bearer['authorization'] as string);
  },
);

verifies(
  ['gateway.agctl.trace.raw'],
  'the JSON Lines trace of a rejected call exits with 1 under --fail-on deny',
  async () => {
    const token = idp.token({ sub: 'bob' });
    const { code, stdout } = await traced(['--raw', '--fail-on', 'deny'], () =>
      openSession(`${gate.url}/mcp`, { authorization: `Bearer ${token}` }).catch(() => undefined),
    );
    expect(code).toBe(1);
    const messages = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).message);
    expect(messages.map(({ type }) => type)).toEqual(
      expect.arrayContaining([
        'routeSelection',
        'policySelection',
        'cel',
        'authorizationResult',
        'requestFinished',
      ]),
    );
    expect(messages.find(({ type }) => type === 'requestFinished')).toMatchObject({ status: 403 });
    expect(stdout).not.toContain(token);
  },
);

verifies(
  ['gateway.agctl.trace.parts'],
  'the trace of a failed call with status 200 is a failure in text and for --fail-on',
  async () => {
    const session = await openSession(`${gate.url}/mcp`, bearer);
    const call = (args: object) => () => session.request('tools/call', { name: 'fail', arguments: args });
    const good = await traced(['--fail-on', 'warn'], () => session.request('ping'));
    expect([good.code, good.stdout]).toEqual([0, expect.stringContaining('  200, answered by stdio:one')]);
    const failed = await traced(['--fail-on', 'error'], call({}));
    expect(failed.code).toBe(1);
    expect(failed.stdout).toMatch(/ backend .*stdio:one the tool reported an error/);
    expect(failed.stdout).toContain('200, the tool reported an error (isError), answered by stdio:one');
    const refused = await traced(['--fail-on', 'error'], call({ code: -32603, message: 'no disk' }));
    expect(refused.code).toBe(1);
    expect(refused.stdout).toContain('200, MCP error -32603: no disk, answered by stdio:one');
  },
);

test('--count 20 prints concurrent requests one after another and saves them for replay', async () => {
  await using folder = await temporaryFolder();
  const save = join(folder.path, 'all.jsonl');
  // Traces have bodies and claims.
  writeFileSync(save, 'of before', { mode: 0o644 });
  const paths = Array.from({ length: 20 }, (_, index) => `/r${index}/`);
  const told = (stdout: string): string[] =>
    [...stdout.matchAll(/ request +GET (\/r\d+\/)/g)].map(([, path]) => path ?? '');
  const ran = await traced(
    ['--count', '20', '--match', 'request.path.startsWith("/r")', '--save', save],
    () => Promise.all(paths.map((path) => send(`${gate.url}${path}`))),
  );
  expect([ran.code, told(ran.stdout).toSorted()]).toEqual([0, paths.toSorted()]);
  // The first line of a request directly follows the last line of the previous one.
  const lines = ran.stdout.split('\n');
  for (const [index, line] of lines.entries())
    if (/ request +GET/.test(line) && index > 0) expect(lines[index - 1]).toMatch(/^GET \/r\d+\/ .*ms$/);
  expect(statSync(save).mode & 0o777).toBe(0o600);
  const again = await cli(['proxy', 'trace', '--file', save]);
  expect(again.stdout).toBe(ran.stdout);
});

test('the trace of a request that its timeout ended blames neither a policy nor the client', async () => {
  await using backend = await httpUpstream(() => undefined);
  await using slow = await proxyGateway(backend.address, { timeout: { requestTimeout: '100ms' } });
  await using admin = await traceServer(slow.running);
  const live = { stdout: '', stderr: '' };
  const args = ['proxy', 'trace', '--admin', `127.0.0.1:${admin.port}`, '--fail-on', 'deny'];
  const ran = cli(args, { live });
  await until(() => slow.running.traceSubscribers.active);
  await send(slow.url);
  const { code, stdout } = await ran;
  const why = 'no response within 100 ms';
  expect(stdout).toContain(`upstream call failed: the request was ended by its timeout: ${why}`);
  expect(stdout).toContain(`504, ended by timeout: ${why}`);
  expect(stdout).not.toMatch(/denied|client (left|disconnected)/);
  expect(code).toBe(0);
});

test('a field of the access log without a value is no problem of the traced request', async () => {
  await using fixed = await gateway(
    JSON.stringify({
      frontendPolicies: { accessLog: { add: { who: 'jwt.sub', tenant: 'request.headers["x-tenant"]' } } },
      gateways: { a: { port: 0, routes: [{ policies: { directResponse: { body: 'ok' } } }] } },
    }),
  );
  await using admin = await traceServer(fixed.running);
  const args = ['proxy', 'trace', '--admin', `127.0.0.1:${admin.port}`, '--fail-on', 'warn,cel-error'];
  const ran = cli(args);
  await until(() => fixed.running.traceSubscribers.active);
  await send(fixed.url);
  const { code, stdout } = await ran;
  expect([code, stdout]).toEqual([0, expect.stringMatching(/jwt\.sub => error: /)]);
});
