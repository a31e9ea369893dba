import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, describe, expect, test } from 'vitest';
import { AUTHORITY, certificateOf } from '../../../../kit/certificates.ts';
import { chaos, mcpConfig } from '../../../../kit/config.ts';
import { openEvents } from '../../../../kit/event-stream.ts';
import { temporaryFolder } from '../../../../kit/folder.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { INITIALIZE, type McpReply, openSession, post } from '../../../../kit/mcp.ts';
import { mcpUpstream } from '../../../../kit/mcp-upstream.ts';
import { sseServer } from '../../../../kit/sse-server.ts';
import { until } from '../../../../kit/until.ts';
import { httpUpstream } from '../../../../kit/upstream.ts';

const { path: folder, remove } = await temporaryFolder();
afterAll(remove);
const certificates = dirname(AUTHORITY);

/** The text that the only tool of a target answers. */
async function said(target: object, headers = {}): Promise<string> {
  await using gate = await gateway(mcpConfig([target]), { folder });
  const session = await openSession(`${gate.url}/mcp`, headers);
  const { result } = await session.request('tools/call', { name: 'say', arguments: { message: 'hello' } });
  await session.end();
  return result.content[0].text;
}

const refused = async (target: object): Promise<McpReply> => {
  await using gate = await gateway(mcpConfig([target]), { folder });
  return await post(`${gate.url}/mcp`, INITIALIZE);
};

describe('an HTTP target on a Unix socket', () => {
  test.each(['unix:', 'unix://'])('an HTTP target on a Unix socket is reached with %s', async (scheme) => {
    const socket = join(folder, `${scheme.length}.sock`);
    await using up = await mcpUpstream({ socket });
    const target = { name: 'up', mcp: { host: `${scheme}${socket}`, path: '/its/path?v=1' } };
    await using gate = await gateway(mcpConfig([target]));
    const session = await openSession(`${gate.url}/mcp`);
    await using own = await openEvents(session.url, { session: session.id });
    expect((await session.request('tools/list')).result.tools[0].name).toBe('say');
    await until(() => up.streams.length === 1);
    const change = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };
    up.streams[0]?.write(`data: ${JSON.stringify(change)}\n\n`);
    await own.next(({ method }) => method === 'notifications/tools/list_changed');
    await session.end();
    expect(new Set(up.received.map(({ path }) => path))).toEqual(new Set(['/its/path?v=1']));
    expect(new Set(up.received.map(({ headers }) => headers['host']))).toEqual(new Set(['localhost']));
    expect((await gate.accessLine(3))['endpoint']).toBe(`unix:${socket}`);
  });

  test('the path of an HTTP target on a Unix socket is /mcp by default', async () => {
    const socket = join(folder, 'default.sock');
    await using up = await mcpUpstream({ socket });
    expect(await said({ name: 'up', mcp: { host: `unix:${socket}` } })).toBe('up says hello');
    expect(up.received[0]?.path).toBe('/mcp');
  });

  test.each([
    [undefined, '/v1/pets?q=1'],
    ['/v2', '/v2/pets?q=1'],
  ])('an OpenAPI target on a Unix socket with path %s is called at %s', async (path, expected) => {
    await using api = await httpUpstream(undefined, { socket: true });
    const parameters = [{ name: 'q', in: 'query' }];
    const schema = JSON.stringify({
      openapi: '3.1.0',
      servers: [{ url: 'https://api.example.com/v1' }],
      paths: { '/pets': { get: { operationId: 'pets', parameters } } },
    });
    await using gate = await gateway(
      mcpConfig([{ name: 'a', openapi: { host: api.address, path, schema } }]),
    );
    const session = await openSession(`${gate.url}/mcp`);
    const { result } = await session.request('tools/call', { name: 'pets', arguments: { query: { q: 1 } } });
    expect(result.content[0].text).toBe('ok');
    expect(api.received.map(({ target, headers }) => [target, headers['host']])).toEqual([
      [expected, 'localhost'],
    ]);
    await session.end();
  });

  test('an HTTP+SSE target on a Unix socket is reached at /sse by default', async () => {
    await using up = await sseServer();
    const { port } = new URL(up.url);
    const socket = join(folder, 'sse.sock');
    const pipe = createServer((client) => client.pipe(connect(Number(port), '127.0.0.1')).pipe(client));
    await once(pipe.listen(socket), 'listening');
    const target = { name: 'up', sse: { host: `unix:${socket}` } };
    await using gate = await gateway(mcpConfig([target]));
    const session = await openSession(`${gate.url}/mcp`);
    expect((await session.request('tools/list')).result.tools.length).toBeGreaterThan(0);
    await session.end();
    expect(up.received.map(({ what }) => what.split('?')[0])).toContain('GET /sse');
    pipe.close();
  });

  test('a port together with a Unix socket is an error for each kind of target over HTTP', async () => {
    for (const kind of ['mcp', 'sse', 'openapi']) {
      const schema = kind === 'openapi' ? { schema: '{"openapi":"3.1.0","paths":{"/a":{"get":{}}}}' } : {};
      const target = { name: 'up', [kind]: { host: 'unix:/run/a.sock', port: 1, ...schema } };
      await expect(gateway(mcpConfig([target]))).rejects.toThrow('a Unix socket has no port');
    }
  });

  test('a missing Unix socket of an HTTP target is named in the log, and not to the client', async () => {
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: 'unix:/no/such.sock' } }]));
    const { error } = await post(`${gate.url}/mcp`, INITIALIZE);
    expect(error.message).toContain('the socket does not exist');
    expect(error.message).not.toContain('/no/such.sock');
    expect(gate.log.join('')).toContain('unix:/no/such.sock');
  });

  test.each([
    [{ host: 'unix:relative.sock' }, 'targets.0.mcp.host: `unix:relative.sock` is not a socket path'],
    [{ host: 'unix:/a.sock', port: 80 }, 'targets.0.mcp.port: a Unix socket has no port'],
  ])('the address of an HTTP target %j is rejected', async (mcp, problem) => {
    await expect(gateway(mcpConfig([{ name: 'up', mcp }]))).rejects.toThrow(problem);
  });
});

describe('policies.backendTLS of an HTTP target', () => {
  const target = (url: string, backendTLS?: object) => ({
    name: 'up',
    mcp: { host: url },
    ...(backendTLS && { policies: { backendTLS } }),
  });

  test('an HTTP target with a certificate of an own authority is trusted with `root`, and only then', async () => {
    await using up = await mcpUpstream({ certificate: certificateOf('good') });
    const url = `https://localhost:${up.port}/mcp`;
    writeFileSync(join(folder, 'authority.crt'), readFileSync(AUTHORITY));
    expect(await said(target(url, { root: 'authority.crt' }))).toBe('up says hello');
    expect(await said(target(url, { root: AUTHORITY }))).toBe('up says hello');
    const untrusted = 'the certificate was issued by an untrusted authority';
    expect((await refused(target(url))).error.message).toContain(untrusted);
    expect((await refused(target(url, { hostname: 'localhost' }))).error.message).toContain(untrusted);
    expect(up.of('initialize')).toHaveLength(2);
  });

  test('the certificate of an HTTP target must be for its host, or for `hostname`', async () => {
    await using up = await mcpUpstream({ certificate: certificateOf('good') });
    const root = AUTHORITY;
    const another = 'the certificate is for another host';
    expect((await refused(target(up.url, { root }))).error.message).toContain(another);
    expect(await said(target(up.url, { root, hostname: 'localhost' }))).toBe('up says hello');
    const url = `https://localhost:${up.port}/mcp`;
    expect((await refused(target(url, { root, hostname: 'example.com' }))).error.message).toContain(another);
    expect(await said(target(up.url, { root, insecureHost: true }))).toBe('up says hello');
    expect((await refused(target(url, { insecureHost: true }))).error.message).toContain('untrusted');
  });

  test('`insecure` accepts any certificate of an HTTP target', async () => {
    await using up = await mcpUpstream({ certificate: certificateOf('self-signed') });
    expect(await said(target(up.url, { insecure: true }))).toBe('up says hello');
  });

  test('an HTTP target that asks for a client certificate gets the one of `cert` and `key`', async () => {
    const client = join(certificates, 'self-signed.crt');
    const presented: unknown[] = [];
    await using up = await mcpUpstream({
      // The certificate is for servers, so the server would not accept it by itself.
      certificate: { ...certificateOf('good'), requestCert: true, rejectUnauthorized: false },
      script: (_, response) => {
        presented.push((response.req.socket as TLSSocket).getPeerX509Certificate()?.toString());
        return false;
      },
    });
    const url = `https://localhost:${up.port}/mcp`;
    expect(await said(target(url, { root: AUTHORITY }))).toBe('up says hello');
    expect(new Set(presented.splice(0))).toEqual(new Set([undefined]));
    const own = { cert: client, key: join(certificates, 'server.key') };
    expect(await said(target(url, { root: AUTHORITY, ...own }))).toBe('up says hello');
    expect(new Set(presented)).toEqual(new Set([new X509Certificate(readFileSync(client)).toString()]));
  });

  test('`backendTLS` makes a host with port and path an HTTPS address, and works on a Unix socket', async () => {
    const backendTLS = { root: AUTHORITY, hostname: 'localhost' };
    await using up = await mcpUpstream({ certificate: certificateOf('good') });
    const named = { name: 'up', mcp: { host: 'localhost', port: up.port, path: '/mcp' } };
    expect(await said({ ...named, policies: { backendTLS } })).toBe('up says hello');
    const socket = join(folder, 'tls.sock');
    await using _onSocket = await mcpUpstream({ socket, certificate: certificateOf('good') });
    expect(await said(target(`unix:${socket}`, backendTLS))).toBe('up says hello');
  });

  test.each<[string, object, string]>([
    ['a missing file', { root: 'no.pem' }, 'policies.backendTLS.root: file not found: '],
    [
      'a file without a certificate',
      { root: 'text' },
      'policies.backendTLS.root: the file has no certificate',
    ],
    [
      '`cert` without `key`',
      { cert: AUTHORITY },
      'policies.backendTLS: `cert` and `key` must be set together',
    ],
    [
      'a key of another certificate',
      { cert: AUTHORITY, key: join(certificates, 'server.key') },
      'policies.backendTLS.cert: the file cannot be used',
    ],
  ])('`backendTLS` with %s is rejected', async (_, backendTLS, problem) => {
    writeFileSync(join(folder, 'text'), 'not a certificate');
    await expect(
      gateway(mcpConfig([target('https://localhost/mcp', backendTLS)]), { folder }),
    ).rejects.toThrow(problem);
  });

  test('`backendTLS` with an http:// URL, or for a stdio target, is rejected', async () => {
    await expect(gateway(mcpConfig([target('http://localhost/mcp', {})]))).rejects.toThrow(
      'targets.0.mcp.host: `policies.backendTLS` needs an https:// URL',
    );
    await expect(gateway(mcpConfig([{ ...chaos('a'), policies: {} }]))).rejects.toThrow(
      'targets.0.policies: `policies` and `stdio` cannot be used together',
    );
  });
});

describe('policies.backendAuth of an HTTP target', () => {
  test.each([
    ['in the configuration', 'sesame'],
    ['in a file', { file: 'token' }],
  ])('an HTTP target gets the token %s with every request, instead of that of the client', async (_, key) => {
    writeFileSync(join(folder, 'token'), 'sesame\n');
    await using up = await mcpUpstream();
    const target = { name: 'up', mcp: { host: up.url }, policies: { backendAuth: { key } } };
    expect(await said(target, { Authorization: 'Bearer mine' })).toBe('up says hello');
    expect(up.received.map(({ verb }) => verb)).toContain('DELETE');
    expect(new Set(up.received.map(({ headers }) => headers['authorization']))).toEqual(
      new Set(['Bearer sesame']),
    );
  });

  test.each<[unknown, string]>([
    [{ file: 'missing' }, 'policies.backendAuth.key.file: file not found: '],
    ['two\nlines', 'policies.backendAuth.key: the credential is empty or contains characters'],
  ])('the token %j of an HTTP target is rejected', async (key, problem) => {
    const target = { name: 'up', mcp: { host: 'http://localhost/mcp' }, policies: { backendAuth: { key } } };
    await expect(gateway(mcpConfig([target]), { folder })).rejects.toThrow(problem);
  });
});

test('an OpenAPI target is reached with the certificate authority and the token of its policies', async () => {
  await using api = await httpUpstream((_, response) => response.end('{}'), { certificate: 'good' });
  const schema = {
    openapi: '3.0.0',
    info: { title: 'API', version: '1' },
    paths: { '/things': { get: { operationId: 'things', responses: {} } } },
  };
  const target = {
    name: 'api',
    openapi: { schema, host: `https://localhost:${api.port}` },
    policies: { backendTLS: { root: AUTHORITY }, backendAuth: { key: 'sesame' } },
  };
  await using gate = await gateway(mcpConfig([target]), { folder });
  const session = await openSession(`${gate.url}/mcp`, { authorization: 'Bearer mine' });
  await session.request('tools/call', { name: 'things', arguments: {} });
  expect(api.received.map(({ target: path, headers }) => [path, headers['authorization']])).toEqual([
    ['/things', 'Bearer sesame'],
  ]);
});
