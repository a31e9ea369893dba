import { describe, expect, test } from 'vitest';
import { gateway } from '../../kit/gateway.ts';
import { proxyGateway, routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { httpUpstream } from '../../kit/upstream.ts';

describe('backend address', () => {
  test.each<[string, (port: number) => string]>([
    ['host:port', (port) => `127.0.0.1:${port}`],
    ['name:port', (port) => `localhost:${port}`],
    ['http://host:port', (port) => `http://127.0.0.1:${port}`],
    ['http://host:port/', (port) => `http://127.0.0.1:${port}/`],
  ])('a backend address may be %s', async (_form, write) => {
    await using backend = await httpUpstream(undefined, { host: '127.0.0.1' });
    await using gate = await proxyGateway(write(backend.port));
    expect(await send(`${gate.url}/p`)).toMatchObject({ status: 200, text: 'ok' });
    expect(backend.received[0]?.target).toBe('/p');
  });

  test('a backend address may be an IPv6 address', async () => {
    await using backend = await httpUpstream(undefined, { host: '::1' });
    await using gate = await proxyGateway(`[::1]:${backend.port}`);
    expect((await send(gate.url)).status).toBe(200);
    expect(backend.received[0]?.headers.host).toBe(`127.0.0.1:${gate.port}`);
  });

  test('a backend address may be a unix socket', async () => {
    await using backend = await httpUpstream(undefined, { socket: true });
    await using gate = await proxyGateway(backend.address);
    expect(await send(`${gate.url}/p?q`, { method: 'POST', body: 'b' })).toMatchObject({ status: 200 });
    expect(backend.received).toMatchObject([
      { method: 'POST', target: '/p?q', body: 'b', headers: { host: `127.0.0.1:${gate.port}` } },
    ]);
    expect((await gate.accessLine(1))['endpoint']).toBe(backend.address);
    await using slashes = await proxyGateway(backend.address.replace('unix:', 'unix://'));
    expect((await send(slashes.url)).status).toBe(200);
  });

  test.each([
    ['backend', 'is not the address of a service'],
    ['127.0.0.1:99999', 'is not the address of a service'],
    ['127.0.0.1:http', 'is not the address of a service'],
    ['::1:80', 'is not the address of a service'],
    ['user:secret@host:80', 'credentials in an address are not supported'],
    ['http://user@host', 'credentials in an address are not supported'],
    ['http://', 'is not the address of a service'],
    ['a b:80', 'is not the address of a service'],
    ['http://host/path', 'the address must not have a path'],
    ['host:80/path', 'is not the address of a service|must not have a path'],
    ['https://host?query', 'the address must not have a path'],
    ['unix:', 'is not a socket path'],
    ['unix:relative', 'is not a socket path'],
    [`unix:/${'x'.repeat(120)}`, 'is not a socket path'],
  ])('a backend address %s is rejected at load time', async (host, words) => {
    await expect(gateway(routesConfig([{ backends: [{ host }] }]))).rejects.toThrow(
      new RegExp(`^gateways\\.default\\.routes\\.0\\.backends\\.0\\.host: .*(?:${words})`),
    );
  });

  test('a rejected backend address with a password is not quoted', async () => {
    await expect(
      gateway(routesConfig([{ backends: [{ host: 'http://user:canary@host' }] }])),
    ).rejects.toThrow(expect.objectContaining({ message: expect.not.stringContaining('canary') }));
  });

  test('a backend address with another scheme is rejected naming the scheme', async () => {
    await expect(gateway(routesConfig([{ backends: [{ host: 'ftp://host:21' }] }]))).rejects.toThrow(
      /invalid scheme: `ftp`/,
    );
  });
});
