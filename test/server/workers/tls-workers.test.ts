import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { GOOD_TLS } from '../../kit/certificates.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { http2Client, sendHttps } from '../../kit/http2.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { rawUpstream } from '../../kit/upstream.ts';
import { type WorkerGateway, workerGateway } from '../../kit/workers.ts';

// Workers get connections unread: each of them ends TLS itself.

let service: Awaited<ReturnType<typeof rawUpstream>>;
let gate: WorkerGateway;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
const sha1 = (password: string): string => `{SHA}${createHash('sha1').update(password).digest('base64')}`;
beforeAll(async () => {
  service = await rawUpstream((socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi'));
  folder = await temporaryFolder();
  const usersFile = join(folder.path, 'users');
  writeFileSync(usersFile, `ann:${sha1('secret')}\n`);
  gate = await workerGateway({
    config: { connectionTerminationDeadline: '1s' },
    gateways: {
      default: { port: 0, tls: GOOD_TLS, routes: [{ policies: { directResponse: { body: 'secure' } } }] },
      users: {
        port: 0,
        routes: [
          { policies: { basicAuth: { htpasswd: { file: usersFile } }, directResponse: { body: 'in' } } },
        ],
      },
      raw: { port: 0, protocol: 'TCP' },
    },
    tcpRoutes: [{ gateways: 'raw', backends: [{ host: service.address }] }],
  });
});
afterAll(async () => {
  await gate[Symbol.asyncDispose]();
  await service[Symbol.asyncDispose]();
  await folder.remove();
});

const portOf = (name: string): number =>
  gate.pool.listeners.find(({ gateway }) => gateway.plan.name === name)?.port ?? 0;

test('two workers serve HTTP/1.1 and HTTP/2 over TLS on the same port', async () => {
  const answers = await Promise.all(Array.from({ length: 8 }, () => sendHttps(portOf('default'))));
  expect(answers.map(({ text }) => text)).toEqual(Array(8).fill('secure'));
  const clients = await Promise.all(Array.from({ length: 4 }, () => http2Client(portOf('default'))));
  for (const client of clients) {
    expect(await client.send({})).toMatchObject({ status: 200, text: 'secure' });
    await client[Symbol.asyncDispose]();
  }
  const { certificates } = JSON.parse((await send(`${gate.admin}/api/overview`)).text);
  expect(certificates).toEqual([
    { file: GOOD_TLS.cert, expires: expect.stringMatching(/^\d{4}-/), isCurrent: true },
  ]);
});

test('workers say that a file has changed when it has, not when they start', async () => {
  const said = (text: string): number => gate.log.filter((line) => line.includes(text)).length;
  const CERTIFICATE = 'a changed certificate is in use';
  const USERS = 'users were read';
  const files = [...gate.reloadedFiles()];
  expect(files).toHaveLength(3);
  writeFileSync(join(folder.path, 'users'), `bob:${sha1('other')}\n`);
  // What was told to a worker at its start has been handled before that.
  void gate.pool.filesChanged(files);
  await until(() => said(USERS) === 2);
  expect([said(CERTIFICATE), said(USERS)]).toEqual([0, 2]);
});

test('two workers pass on the bytes of TCP connections', async () => {
  for (let count = 0; count < 4; count += 1) {
    const socket = connect(portOf('raw'), '127.0.0.1');
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(String(answer)).toMatch(/^HTTP\/1.1 200 OK/);
    socket.destroy();
  }
});
