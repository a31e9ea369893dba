import { spawnSync } from 'node:child_process';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { askPolicy } from '../../kit/authz.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { answeringGateway, proxyGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream, rawUpstream } from '../../kit/upstream.ts';

const DENIED = { status: 403, text: 'external authorization failed' };
const WHO = { metadata: { who: 'json(response.body).who' } };

describe('extAuthz over a broken unix socket', () => {
  test.each([
    ['does not exist', 'the socket does not exist', () => undefined],
    ['is a file', 'the path is not a socket|connection refused', (path: string) => writeFile(path, 'x')],
    ['is a folder', 'the path is not a socket|connection refused', (path: string) => mkdir(path)],
    ['has no listener', 'connection refused', leaveSocketBehind],
  ])('extAuthz denies and logs the reason when its unix socket %s', async (_how, words, make) => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 's.sock');
    await make(path);
    await using gate = await answeringGateway(askPolicy(`unix:${path}`));
    const started = performance.now();
    expect(await send(gate.url)).toMatchObject(DENIED);
    expect(performance.now() - started).toBeLessThan(1_900);
    const detail = (await gate.accessLine(1))['error.detail'];
    const said = `the authorization service could not be reached: unix:${path}: `;
    expect(detail).toMatch(new RegExp(`^${said}(?:${words})$`));
  });

  // Root may use any socket, regardless of its mode.
  test.skipIf(process.getuid?.() === 0)(
    'extAuthz denies and logs the reason when its unix socket has no permissions',
    async () => {
      await using folder = await temporaryFolder();
      const path = join(folder.path, 's.sock');
      await using _service = await httpUpstream(undefined, { socket: path });
      await chmod(path, 0);
      await using gate = await answeringGateway(askPolicy(`unix:${path}`));
      expect(await send(gate.url)).toMatchObject(DENIED);
      expect((await gate.accessLine(1))['error.detail']).toContain('no permission for the socket');
    },
  );

  test('extAuthz reconnects to a unix socket once it works', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 's.sock');
    await using gate = await answeringGateway(askPolicy(`unix:${path}`));
    expect((await send(gate.url)).status).toBe(403);
    await using _service = await httpUpstream(undefined, { socket: path });
    expect((await send(gate.url)).status).toBe(200);
  });
});

/** A socket file without a listener. */
function leaveSocketBehind(path: string): void {
  const script = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`;
  spawnSync(process.execPath, ['-e', script]);
}

describe('extAuthz with malformed responses', () => {
  const asked = async (reply: (path: string) => Buffer | string, headers = {}): Promise<object> => {
    await using service = await httpUpstream(({ url }, response) =>
      response.writeHead(200, headers).end(reply(url ?? '')),
    );
    await using gate = await answeringGateway(askPolicy(service.address, {}, WHO), {
      frontendPolicies: { accessLog: { add: { who: 'extauthz.who', known: 'has(extauthz.who)' } } },
    });
    const { status } = await send(gate.url);
    expect(gate.accessLog).toHaveLength(1);
    return { status, ...(await gate.accessLine(1)) };
  };

  test.each([
    ['is not JSON', 'hello', {}],
    ['is empty', '', {}],
    ['has no such field', '{"whom":1}', {}],
    ['nests too deeply', `${'['.repeat(30_000)}${']'.repeat(30_000)}`, {}],
    ['is compressed', gzipSync('{"who":"ada"}'), { 'content-encoding': 'gzip' }],
    ['exceeds the size limit', `{"who":"ada","rest":"${'x'.repeat(70_000)}"}`, {}],
    ['is 50 MB', Buffer.alloc(50_000_000, 0x20), {}],
  ])('extAuthz allows without the metadata entry when a 2xx body %s', async (_how, body, headers) => {
    const line = await asked(() => body, headers);
    expect(line).toMatchObject({ status: 200, known: 'false' });
    expect(line).not.toHaveProperty('who');
  });

  test('extAuthz allows on a 2xx with an endless body and stops reading it', async () => {
    const chunk = Buffer.alloc(16_384, 0x20);
    let sent = 0;
    let ended = false;
    await using service = await httpUpstream((_, response) => {
      const more = (): void => {
        if (response.destroyed) return;
        sent += chunk.length;
        if (response.write(chunk)) setImmediate(more);
        else response.once('drain', more);
      };
      response.on('close', () => {
        ended = true;
      });
      more();
    });
    await using gate = await answeringGateway(askPolicy(service.address, {}, WHO));
    expect((await send(gate.url)).status).toBe(200);
    await until(() => ended);
    // The limit is 64 KiB; socket buffers hold some megabytes more.
    expect(sent).toBeLessThan(20_000_000);
  });

  test('extAuthz metadata strings are escaped and truncated in the access log', async () => {
    const who = `ada"\n\u001b[31m\u2028evil=1 ${'x'.repeat(10_000)}`;
    await using service = await httpUpstream((_, response) => response.end(JSON.stringify({ who })));
    await using gate = await answeringGateway(askPolicy(service.address, {}, WHO), {
      frontendPolicies: { accessLog: { add: { who: 'extauthz.who' } } },
    });
    expect((await send(gate.url)).status).toBe(200);
    await until(() => gate.accessLog.length === 1);
    const [line = ''] = gate.accessLog;
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there.
    expect(line.slice(0, -1)).not.toMatch(/[\u0000-\u0008\u000a-\u001f\u2028]/);
    expect(line).toContain(' who="ada\\"\\n\\u001b[31m\\u{2028}evil=1 xxx');
    expect(line.length).toBeLessThan(1500);
  });

  test('extAuthz metadata objects are truncated in the access log', async () => {
    const line = (await asked(() => JSON.stringify({ who: { name: 'x'.repeat(10_000) } }))) as {
      who: string;
    };
    expect(line.who.length).toBeLessThan(1200);
  });

  test('extAuthz metadata objects are truncated in the JSON access log', async () => {
    await using service = await httpUpstream((_, response) =>
      response.end(JSON.stringify({ who: { name: 'x'.repeat(10_000) } })),
    );
    await using gate = await answeringGateway(askPolicy(service.address, {}, WHO), {
      config: { logging: { format: 'json' } },
      frontendPolicies: { accessLog: { add: { who: 'extauthz.who' } } },
    });
    await send(gate.url);
    await until(() => gate.accessLog.length === 1);
    expect(gate.accessLog[0]?.length).toBeLessThan(3000);
  });

  test.each([
    ['two content-length headers', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok'],
    ['bytes that are not HTTP', 'hello\r\n\r\n'],
    ['a protocol switch', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'],
    ['an incomplete head', 'HTTP/1.1 200 OK\r\ncontent-'],
  ])('extAuthz denies when the service answers with %s', async (_what, bytes) => {
    await using service = await rawUpstream((socket) => socket.end(bytes));
    await using gate = await answeringGateway(askPolicy(service.address));
    expect(await send(gate.url)).toMatchObject(DENIED);
  });

  test('extAuthz denies when the body of a 2xx ends early', async () => {
    await using service = await rawUpstream((socket) =>
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"who":'),
    );
    await using gate = await answeringGateway(askPolicy(service.address, {}, WHO));
    expect(await send(gate.url)).toMatchObject(DENIED);
  });
});

describe('extAuthz timing', () => {
  test('extAuthz denies after 2 s without an answer and does not call the backend', async () => {
    await using service = await httpUpstream(() => undefined);
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address, askPolicy(service.address));
    const started = performance.now();
    expect(await send(gate.url)).toMatchObject(DENIED);
    const took = performance.now() - started;
    expect(took).toBeGreaterThan(1900);
    expect(took).toBeLessThan(4000);
    expect(backend.received).toEqual([]);
    expect((await gate.accessLine(1))['error.detail']).toContain(`${service.address}: timed out`);
  });

  test('extAuthz aborts its call when the client disconnects and does not call the backend', async () => {
    let left = false;
    await using service = await httpUpstream((_, response) => {
      response.on('close', () => {
        left = true;
      });
    });
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(
      backend.address,
      askPolicy(service.address, {}, { failureMode: 'allow' }),
    );
    const leave = new AbortController();
    const call = fetch(gate.url, { signal: leave.signal }).catch(() => 'left');
    await until(() => service.received.length === 1);
    leave.abort();
    expect(await call).toBe('left');
    await until(() => left);
    expect(await gate.accessLine(1)).toMatchObject({ 'http.status': '499' });
    expect(backend.received).toEqual([]);
  });
});

describe('extAuthz connections', () => {
  test('extAuthz reuses its connection between calls', async () => {
    await using service = await httpUpstream();
    await using gate = await answeringGateway(askPolicy(service.address));
    for (let i = 0; i < 20; i += 1) expect((await send(gate.url)).status).toBe(200);
    expect(service.connections).toBe(1);
  });

  /** Sequential calls to a service that closes each connection some time after its response. */
  async function denialsWhenClosing(after: (close: () => void) => void): Promise<number> {
    const answer = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: keep-alive\r\n\r\nok';
    await using service = await rawUpstream((socket) => {
      socket.write(answer);
      after(() => socket.end());
    });
    await using gate = await answeringGateway(askPolicy(service.address));
    const agent = new Agent({ keepAlive: true });
    let denied = 0;
    for (let i = 0; i < 1000; i += 1) {
      const { status } = await send(gate.url, { agent });
      if (status !== 200) denied += 1;
    }
    agent.destroy();
    return denied;
  }

  test('extAuthz denies no request when the service closes connections right after its response', async () => {
    expect(await denialsWhenClosing((close) => setImmediate(close))).toBe(0);
  });

  // The service may close a kept connection while the next call is being sent on it.
  test('extAuthz denies no request when the service closes connections some milliseconds after its response', async () => {
    expect(await denialsWhenClosing((close) => setTimeout(close, Math.random() * 4))).toBe(0);
  });

  test('extAuthz denies no request when the service resets connections on their second use', async () => {
    await using service = await rawUpstream((socket) => {
      // Each connection answers once and is reset at its second request.
      if (socket.listenerCount('used') > 0) return socket.resetAndDestroy();
      socket.on('used', () => undefined);
      return socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
    });
    await using gate = await answeringGateway(askPolicy(service.address));
    const statuses = [];
    for (let i = 0; i < 4; i += 1) statuses.push((await send(gate.url)).status);
    expect(statuses).toEqual([200, 200, 200, 200]);
  });
});
