import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { AT_ONCE } from '../kit/at-once.ts';
import { cli } from '../kit/cli.ts';
import { chaos, mcpConfig } from '../kit/config.ts';
import { openEvents } from '../kit/event-stream.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { isAlive } from '../kit/is-alive.ts';
import { CHAT, chat, chunk, llmProvider } from '../kit/llm-provider.ts';
import { INITIALIZE, openSession, post } from '../kit/mcp.ts';
import { busyPort, freePort } from '../kit/ports.ts';
import { AGCTL, serve } from '../kit/process.ts';
import { send } from '../kit/send.ts';
import { until } from '../kit/until.ts';

const config = { connectionTerminationDeadline: '2s' };
/** For tests that distinguish an immediate exit from one at the deadline. */
const patient = { connectionTerminationDeadline: '15s' };

/** A call that takes this many milliseconds, or one that never ends. */
const later = (ms: number) => ({
  id: 1,
  method: 'tools/call',
  params: { name: 'later', arguments: { ms, message: 'done' } },
});
const HANG = { id: 1, method: 'tools/call', params: { name: 'hang' } };

describe('start', () => {
  test('serve prints its addresses and how to stop it on stderr; stdout has only requests', async () => {
    await using running = await serve(
      mcpConfig([chaos('a')], { route: { matches: [{ path: { pathPrefix: '/mcp' } }] } }),
    );
    expect(running.stderr).toMatch(
      /gateway default +http:\/\/127\.0\.0\.1:\d+ +\(all addresses of this machine\)\n +\/mcp +mcp a \(stdio: /,
    );
    expect(running.stderr).toMatch(
      /ready in \d+ ms\. Ctrl-C stops after open requests finish \(at most 0\.1 s\); a second Ctrl-C stops now\./,
    );
    await until(() => running.stderr.includes('\tinfo\tproxy::gateway\tstarted bind\t'));
    expect(running.stdout).toBe('');
    const session = await openSession(`${running.url}/mcp`);
    await session.request('ping');
    await until(() => running.stdout.split('\n').length === 4);
    for (const line of running.stdout.trimEnd().split('\n'))
      expect(line).toContain('\tinfo\trequest gateway=default/default ');
  });

  test.skipIf(!existsSync('/dev/full'))(
    'serve answers and ends although stdout and stderr take nothing',
    async () => {
      await using folder = await temporaryFolder();
      const port = await freePort();
      const file = join(folder.path, 'gateway.json');
      const routes = [{ policies: { directResponse: { body: 'ok' } } }];
      const off = { adminAddr: 'off', statsAddr: 'off', readinessAddr: 'off' };
      await writeFile(
        file,
        JSON.stringify({ config: off, gateways: { default: { port, address: '127.0.0.1', routes } } }),
      );
      const full = openSync('/dev/full', 'w');
      const child = spawn(process.execPath, [AGCTL, 'serve', '-f', file], { stdio: ['ignore', full, full] });
      const ended = once(child, 'exit');
      const answer = (): Promise<string> =>
        send(`http://127.0.0.1:${port}/`).then(({ text }) => text, String);
      await expect.poll(answer, { timeout: 10_000 }).toBe('ok');
      child.kill('SIGTERM');
      expect(await ended).toEqual([0, null]);
    },
  );

  test('serve with a port in use is exit code 1 and points to the line of the port', async () => {
    await using busy = await busyPort();
    const { port } = busy;
    const yaml = `gateways:\n  first:\n    port: 0\n    routes: []\n  second:\n    port: ${port}\n`;
    const { code, stdout, stderr } = await cli(['serve', '-f', '-'], { input: yaml });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain(`error[AGW0401]: port ${port} is already in use\n  ┌─ -:6:11\n`);
    expect(stderr).toContain(`6 │     port: ${port}\n`);
    expect(stderr).toContain('= help: stop the other process, or set another port here');
    expect(stderr).not.toMatch(/^ready in /m);
  });

  test('serve with an invalid configuration is exit code 1 with every problem', async () => {
    const { code, stdout, stderr } = await cli(['serve', '-f', '-'], {
      input: 'gateways:\n  a: { port: x, prt: 1 }\n',
    });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain('-:2:14');
    expect(stderr).toContain('unknown field `prt`');
    expect(stderr).toContain('error: - is not a valid configuration\n');
  });

  test('serve prints and counts warnings and starts', async () => {
    await using running = await serve(
      JSON.stringify({ config: { adminAddr: 'off' }, gateways: { idle: { port: 0 } } }),
    );
    expect(running.stderr).toContain('warning[AGW0303]');
    expect(running.stderr).toContain('valid, 1 warning');
    expect((await fetch(running.url)).status).toBe(404);
  });
});

describe('SIGTERM', () => {
  test('SIGTERM lets open calls complete, rejects new connections and exits with 0', async () => {
    await using running = await serve(mcpConfig([chaos('a')], { config }));
    const sessions = await Promise.all([1, 2, 3].map(() => openSession(`${running.url}/mcp`)));
    const calls = sessions.map((session) => session.send(later(700)));
    // The responses arrive in order on one pipe, so the calls have arrived.
    await Promise.all(sessions.map((session) => session.request('ping')));
    running.kill('SIGTERM');
    await until(() =>
      running.stderr.includes('SIGTERM: finishing open requests; a second signal stops now\n'),
    );
    await until(() =>
      fetch(running.url, { headers: { connection: 'close' } }).then(
        () => false,
        () => true,
      ),
    );
    for (const { result } of await Promise.all(calls)) expect(result.content[0].text).toBe('done');
    expect(await running.finished).toMatchObject({ code: 0, signal: null });
    expect(running.stdout.trimEnd().split('\n')).toHaveLength(12);
  });

  test('SIGTERM ends serve soon after the last open call has completed', async () => {
    await using running = await serve(mcpConfig([chaos('a')], { config: patient }));
    const session = await openSession(`${running.url}/mcp`);
    const call = session.send(later(300));
    await session.request('ping');
    running.kill('SIGTERM');
    await call;
    const answered = performance.now();
    await running.finished;
    expect(performance.now() - answered).toBeLessThan(AT_ONCE);
  });

  test('SIGTERM does not wait for the streams of sessions without calls', async () => {
    await using running = await serve(mcpConfig([chaos('a')], { config }));
    const session = await openSession(`${running.url}/mcp`);
    await using _stream = await openEvents(session.url, { session: session.id });
    running.kill('SIGTERM');
    await until(() => !isAlive(running.pid), 1_500);
  });

  test('SIGTERM answers calls still open at the deadline with an error and reports how many were aborted', async () => {
    const short = { connectionTerminationDeadline: '300ms' };
    await using running = await serve(mcpConfig([chaos('a')], { config: short }));
    const session = await openSession(`${running.url}/mcp`);
    // One whose response has not begun, and one whose events are on their way.
    const calls = [
      session.send(HANG),
      session.send({
        id: 2,
        method: 'tools/call',
        params: { name: 'progress', arguments: { steps: 100_000 }, _meta: { progressToken: 'p' } },
      }),
    ];
    await session.request('ping');
    running.kill('SIGTERM');
    const error = {
      code: -32603,
      message: 'the gateway is closing this port, and the drain timeout has expired',
    };
    const [hanging, streaming] = await Promise.all(calls);
    expect(hanging).toMatchObject({ status: 200, messages: [{ id: 1, error }] });
    expect(streaming?.messages.length).toBeGreaterThan(2);
    expect(streaming?.messages.at(-1)).toMatchObject({ id: 2, error });
    const { code, stdout, stderr } = await running.finished;
    expect(code).toBe(0);
    expect(stdout.match(/gen_ai\.tool\.name=(?:hang|progress) .*mcp\.error\.code=-32603/g)).toHaveLength(2);
    expect(stderr.match(/\twarn\t.*requests were aborted.*/g)).toEqual([
      expect.stringContaining('\twarn\tproxy::gateway\t2 requests were aborted at the deadline'),
    ]);
  });

  test('SIGTERM answers every pending request at the deadline and ends LLM streams with an error event', async () => {
    const part = chunk({ content: 'Hel' });
    await using provider = await llmProvider((_, response, { body }) => {
      if (!body.includes('"stream":true')) return;
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(part);
    });
    const model = { name: '*', provider: 'oaiCompat', params: { baseUrl: `http://${provider.address}/v1` } };
    const at = (pathPrefix: string, backend: object): object => ({
      matches: [{ path: { pathPrefix } }],
      backends: [backend],
    });
    const routes = [
      at('/plain', { host: provider.address }),
      at('/v1', { llm: { models: [model] } }),
      at('/mcp', { mcp: { targets: [chaos('a', '--silent')] } }),
    ];
    const short = { connectionTerminationDeadline: '300ms', logging: { level: 'debug' } };
    await using running = await serve(
      JSON.stringify({ config: short, gateways: { g: { port: 0, routes } } }),
    );
    const stream = await fetch(`${running.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ ...CHAT, stream: true }),
    });
    const calls = [chat(running), send(`${running.url}/plain`)] as const;
    const session = post(`${running.url}/mcp`, INITIALIZE);
    await until(() => provider.received.length === 3 && running.stderr.includes('target started'));
    running.kill('SIGTERM');
    const message = 'the gateway is closing this port, and the drain timeout has expired';
    const error = { message, type: 'api_error', code: 'gateway_closing' };
    const [whole, plain] = await Promise.all(calls);
    expect(await stream.text()).toBe(`${part}data: ${JSON.stringify({ error })}\n\n`);
    expect(whole).toMatchObject({ status: 503, headers: { connection: 'close' } });
    expect(JSON.parse(whole.text)).toEqual({ error });
    expect(plain).toMatchObject({ status: 503, headers: { connection: 'close' }, text: message });
    expect(await session).toMatchObject({ status: 503, text: message });
    const { code, stdout, stderr } = await running.finished;
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split('\n');
    expect(lines.map((line) => / http\.status=(\d+) /.exec(line)?.[1]).sort()).toEqual([
      '200',
      '503',
      '503',
      '503',
    ]);
    for (const line of lines) expect(line).toContain(` error="${message}" reason=Timeout `);
    expect(stderr.match(/\twarn\t.*requests were aborted.*/g)).toEqual([
      expect.stringContaining('\twarn\tproxy::gateway\t4 requests were aborted at the deadline'),
    ]);
  });

  test.each([
    ['SIGTERM', 1],
    ['SIGINT', 130],
  ] as const)('a second signal, %s, stops serve immediately with %i', async (signal, code) => {
    await using running = await serve(mcpConfig([chaos('a')], { config: patient }));
    const session = await openSession(`${running.url}/mcp`);
    const call = session.send(HANG);
    call.catch(() => undefined);
    await session.request('ping');
    running.kill('SIGTERM');
    await until(() => running.stderr.includes('finishing open requests'));
    const started = performance.now();
    running.kill(signal);
    expect((await running.finished).code).toBe(code);
    expect(performance.now() - started).toBeLessThan(AT_ONCE);
  });
});

describe('log output', () => {
  test('serve with JSON logs prints only JSON on both streams from start to end', async () => {
    const config = { logging: { format: 'json' } };
    // Half of the configuration is unreachable, which is a warning.
    const routes = [{ name: 'a' }, { name: 'b' }].map((route) => ({
      ...route,
      policies: { directResponse: { body: 'x' } },
    }));
    const gateways = { default: { port: 0, address: '127.0.0.1', routes } };
    await using running = await serve(JSON.stringify({ config, gateways }));
    await fetch(running.url);
    await until(() => running.stdout !== '');
    expect(JSON.parse(running.stdout)).toMatchObject({ scope: 'request', 'http.status': 200 });
    running.kill('SIGTERM');
    const { stderr } = await running.finished;
    const lines = stderr
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ level: 'warn', scope: 'config', at: expect.stringMatching(/:1:\d+$/) }),
        expect.objectContaining({ level: 'info', scope: 'proxy::gateway', message: 'started bind' }),
        expect.objectContaining({ message: 'ready', gateways: `default=${running.url}` }),
        expect.objectContaining({ message: 'finishing open requests', signal: 'SIGTERM' }),
      ]),
    );
  });

  test('serve continues when the reader of its log output has closed the pipe', async () => {
    await using running = await serve(mcpConfig([chaos('a')]), { closeStdout: true });
    for (let turn = 0; turn < 20; turn += 1) {
      expect((await fetch(`${running.url}/mcp`, { method: 'PUT' })).status).toBe(405);
    }
    expect(isAlive(running.pid)).toBe(true);
  });
});
