import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type ListenAddress, parseListenAddress } from '../../src/core/listen.ts';
import { ListenError, listenOn } from '../../src/core/listening-server.ts';
import { temporaryFolder } from '../kit/folder.ts';

const hello = (_: unknown, response: { end(text: string): void }): void => response.end('hello');
const at = (text: string): ListenAddress => parseListenAddress(text) as ListenAddress;

describe('listenOn', () => {
  test('listenOn localhost serves both loopback addresses on one port and frees it on close', async () => {
    const server = await listenOn(at('localhost:0'), hello);
    const url = `http://127.0.0.1:${server?.port}`;
    expect(server?.address).toBe(`127.0.0.1:${server?.port}`);
    expect(await (await fetch(url)).text()).toBe('hello');
    expect(await (await fetch(`http://[::1]:${server?.port}`)).text()).toBe('hello');
    await server?.close();
    await expect(fetch(url)).rejects.toThrow();
    const again = await listenOn(at(`127.0.0.1:${server?.port}`), hello);
    await again?.close();
  });

  test('listenOn without a host serves all addresses', async () => {
    const server = await listenOn(at(':0'), hello);
    expect(await (await fetch(`http://127.0.0.1:${server?.port}`)).text()).toBe('hello');
    await server?.close();
  });

  test('listenOn names the address that is already in use', async () => {
    const taken = await listenOn(at('127.0.0.1:0'), hello);
    const second = listenOn(at(`127.0.0.1:${taken?.port}`), hello);
    await expect(second).rejects.toThrow(`127.0.0.1:${taken?.port} is already in use`);
    await expect(second).rejects.toBeInstanceOf(ListenError);
    await taken?.close();
  });

  test('listenOn localhost fails unless the port is free on both loopback addresses', async () => {
    const taken = await listenOn(at('[::1]:0'), hello);
    await expect(listenOn(at(`localhost:${taken?.port}`), hello)).rejects.toThrow(
      `[::1]:${taken?.port} is already in use`,
    );
    const again = await listenOn(at(`127.0.0.1:${taken?.port}`), hello);
    await again?.close();
    await taken?.close();
  });

  test('listenOn off opens no socket', async () => {
    expect(await listenOn(at('off'), hello)).toBeUndefined();
  });

  test("listenOn replaces a stale unix socket but neither another process's socket nor other files", async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'a.sock');
    const other = spawn(process.execPath, [
      '-e',
      `require('node:net').createServer().listen(${JSON.stringify(path)}, () => console.log('there'))`,
    ]);
    await once(other.stdout, 'data');
    await expect(listenOn(at(`unix:${path}`), hello)).rejects.toThrow(`unix:${path} is already in use`);
    await new Promise<void>((resolve) => {
      const visitor = connect(path, () => visitor.destroy()).once('close', () => resolve());
    });
    // A killed process leaves its socket file.
    other.kill('SIGKILL');
    await once(other, 'close');
    expect(existsSync(path)).toBe(true);
    const server = await listenOn(at(`unix:${path}`), hello);
    const text = await new Promise((resolve) => {
      request({ socketPath: path }, (response) =>
        response.once('data', (data) => resolve(String(data))),
      ).end();
    });
    expect(text).toBe('hello');
    await server?.close();
    const file = join(folder.path, 'file');
    writeFileSync(file, 'kept');
    await expect(listenOn(at(`unix:${file}`), hello)).rejects.toThrow('is not a socket');
    expect(existsSync(file)).toBe(true);
  });
});
