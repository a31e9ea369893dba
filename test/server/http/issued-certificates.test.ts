import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type TLSSocket } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { certificatePath, GOOD_TLS } from '../../kit/certificates.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { http2Client } from '../../kit/http2.ts';

const authority = (name: 'issuing' | 'issuing-rsa') => ({
  cert: certificatePath(`${name}.crt`),
  key: certificatePath(`${name}.key`),
});
const TLS = { mode: 'dynamicCa', ...authority('issuing') };
const issuing = (tls: object = TLS): Promise<TestGateway> =>
  gateway(
    JSON.stringify({
      gateways: { default: { port: 0, tls, routes: [{ policies: { directResponse: { body: 'inside' } } }] } },
    }),
  );

/** A connection of a client that trusts the authority only. */
async function trusting(port: number, servername?: string, ca = TLS.cert): Promise<TLSSocket> {
  const name = servername === undefined ? {} : { servername };
  const socket = connect({ port, host: '127.0.0.1', ca: readFileSync(ca), ...name });
  await once(socket, 'secureConnect');
  return socket;
}

describe('tls.mode dynamicCa', () => {
  test('each name gets a certificate of its own, which clients of the authority accept', async () => {
    await using gate = await issuing();
    const serials = new Set<string>();
    for (const name of ['one.example', 'two.example', `${'a'.repeat(60)}.long.example`, 'ONE.example']) {
      const socket = await trusting(gate.port, name);
      const { subjectaltname, serialNumber, ca, ext_key_usage: usage } = socket.getPeerCertificate();
      expect(subjectaltname).toBe(`DNS:${name.toLowerCase()}`);
      expect([ca, usage]).toEqual([false, ['1.3.6.1.5.5.7.3.1']]);
      serials.add(serialNumber);
      socket.destroy();
    }
    expect(serials.size).toBe(3);
  });

  test('requests are answered inside', async () => {
    await using gate = await issuing();
    await using client = await http2Client(gate.port, {
      ca: readFileSync(TLS.cert),
      servername: 'any.example',
    });
    expect(await client.send({})).toMatchObject({ status: 200, text: 'inside' });
  });

  test('an authority with an RSA key issues certificates, too', async () => {
    await using gate = await issuing({ ...TLS, ...authority('issuing-rsa') });
    (await trusting(gate.port, 'one.example', certificatePath('issuing-rsa.crt'))).destroy();
  });

  test('a client without a name, and one that does not trust the authority, get no connection', async () => {
    await using gate = await issuing();
    await expect(trusting(gate.port)).rejects.toThrow();
    await expect(trusting(gate.port, 'one.example', certificatePath('client-authority.crt'))).rejects.toThrow(
      'self-signed certificate in certificate chain',
    );
  });

  test('without mode, the same files are the certificate itself', async () => {
    await using gate = await issuing(GOOD_TLS);
    await expect(trusting(gate.port, 'one.example')).rejects.toThrow();
  });

  test('a certificate of no authority is reported, and authorities of clients are refused', async () => {
    await using gate = await issuing({ ...TLS, ...GOOD_TLS });
    const reported = gate.live.served.diagnostics.map(({ message }) => message).join();
    expect(reported).toContain('the certificate is not that of an authority');
    const root = certificatePath('client-authority.crt');
    await expect(issuing({ ...TLS, root })).rejects.toThrow('`root` cannot be used with `mode: dynamicCa`');
  });
});
