import { createPrivateKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { connect as connectTcp } from 'node:net';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { loadConfigText } from '../../../src/server/config/load.ts';
import { certificatePath, GOOD_TLS, TRUSTING } from '../../kit/certificates.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway, type TestGatewayOptions } from '../../kit/gateway.ts';
import { http2Client, sendHttps } from '../../kit/http2.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

const answering = (tls: object, options: TestGatewayOptions = {}, protocol?: string, more: object = {}) =>
  gateway(
    JSON.stringify({
      ...more,
      gateways: {
        default: { port: 0, protocol, tls, routes: [{ policies: { directResponse: { body: 'reached' } } }] },
      },
    }),
    options,
  );

/** The TLS version, cipher and ALPN protocol of a connection. Rejects with the error of the handshake. */
async function handshake(
  port: number,
  options: object = {},
): Promise<{ version: string | null; alpn: unknown; cipher: string }> {
  const socket = connect({ host: '127.0.0.1', port, ...TRUSTING, ...options });
  await once(socket, 'secureConnect');
  const result = {
    version: socket.getProtocol(),
    alpn: socket.alpnProtocol,
    cipher: socket.getCipher().name,
  };
  socket.destroy();
  return result;
}

describe('a port with TLS', () => {
  test('serves HTTP/1.1 and HTTP/2 on the same port', async () => {
    await using gate = await answering(GOOD_TLS);
    await using client = await http2Client(gate.port);
    expect((await sendHttps(gate.port)).text).toBe('reached');
    expect(await client.send({ ':path': '/x' })).toMatchObject({ status: 200, text: 'reached' });
    expect(await gate.accessLine(1)).toMatchObject({ 'http.version': 'HTTP/1.1', 'http.status': '200' });
    expect(await gate.accessLine(2)).toMatchObject({
      'http.version': 'HTTP/2.0',
      'http.host': 'localhost',
      'http.path': '/x',
    });
  });

  test('a client without ALPN gets HTTP/1.1, one without a common protocol no connection', async () => {
    await using gate = await answering(GOOD_TLS);
    expect(await handshake(gate.port)).toMatchObject({ alpn: false });
    expect(await handshake(gate.port, { ALPNProtocols: ['http/1.1'] })).toMatchObject({ alpn: 'http/1.1' });
    expect(await handshake(gate.port, { ALPNProtocols: ['http/1.1', 'h2'] })).toMatchObject({ alpn: 'h2' });
    await expect(handshake(gate.port, { ALPNProtocols: ['spdy/3'] })).rejects.toThrow(
      /no application protocol/i,
    );
  });

  test('TLS versions and cipher suites are those of the configuration', async () => {
    await using gate = await answering({
      ...GOOD_TLS,
      maxTLSVersion: 'TLS_V1_2',
      cipherSuites: ['TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256'],
    });
    expect(await handshake(gate.port)).toMatchObject({
      version: 'TLSv1.2',
      cipher: 'ECDHE-ECDSA-AES128-GCM-SHA256',
    });
    await expect(handshake(gate.port, { minVersion: 'TLSv1.3' })).rejects.toThrow(/version/);
    await using strict = await answering({ ...GOOD_TLS, minTLSVersion: 'TLS_V1_3' });
    await expect(handshake(strict.port, { maxVersion: 'TLSv1.2' })).rejects.toThrow(/version/);
  });

  test('key exchange groups are those of the listener, else those of frontendPolicies.tls', async () => {
    await using gate = await answering({ ...GOOD_TLS, keyExchangeGroups: ['P-384'] });
    expect(await handshake(gate.port, { ecdhCurve: 'P-384' })).toMatchObject({ version: 'TLSv1.3' });
    await expect(handshake(gate.port, { ecdhCurve: 'X25519' })).rejects.toThrow(/handshake failure/);
    const frontendPolicies = { tls: { keyExchangeGroups: ['X25519'] } };
    await using other = await answering(GOOD_TLS, {}, undefined, { frontendPolicies });
    expect(await handshake(other.port, { ecdhCurve: 'X25519' })).toMatchObject({ version: 'TLSv1.3' });
    await expect(handshake(other.port, { ecdhCurve: 'P-384' })).rejects.toThrow(/handshake failure/);
  });

  test('with `root`, only clients with a certificate from that authority are served', async () => {
    await using gate = await answering({ ...GOOD_TLS, root: certificatePath('client-authority.crt') });
    const pair = (cert: 'client.crt' | 'other.crt', key: 'client.key' | 'other.key') => ({
      ...TRUSTING,
      cert: readFileSync(certificatePath(cert)),
      key: readFileSync(certificatePath(key)),
    });
    expect((await sendHttps(gate.port, {}, pair('client.crt', 'client.key'))).text).toBe('reached');
    await using client = await http2Client(gate.port, pair('client.crt', 'client.key'));
    expect(await client.send({})).toMatchObject({ text: 'reached' });
    await expect(sendHttps(gate.port, {}, pair('other.crt', 'other.key'))).rejects.toThrow();
    await expect(sendHttps(gate.port)).rejects.toThrow();
  });

  test('a request without TLS is not answered', async () => {
    await using gate = await answering(GOOD_TLS);
    await expect(fetch(`http://127.0.0.1:${gate.port}/`)).rejects.toThrow();
    expect(await sendHttps(gate.port)).toMatchObject({ text: 'reached' });
  });

  test('a client that does not finish its handshake is disconnected', async () => {
    await using gate = await answering(GOOD_TLS, { limits: { tlsHandshakeTimeout: 100 } });
    const socket = connectTcp(gate.port, '127.0.0.1').resume();
    await once(socket, 'close');
    const frontendPolicies = { tls: { handshakeTimeout: '100ms' } };
    const limits = { tlsHandshakeTimeout: 3_600_000 };
    await using configured = await answering(GOOD_TLS, { limits }, undefined, { frontendPolicies });
    await once(connectTcp(configured.port, '127.0.0.1').resume(), 'close');
  });

  test('a client that does not finish its headers is answered with 408', async () => {
    await using gate = await answering(GOOD_TLS, {
      limits: { headersTimeout: 100, requestTimeout: 100, connectionsCheckingInterval: 20 },
    });
    const socket = connect({ host: '127.0.0.1', port: gate.port, ...TRUSTING });
    socket.write('GET / HTTP/1.1\r\n');
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1.1 408 /);
    socket.destroy();
  });

  test('the scheme of expressions is https, and bodies reach the backend', async () => {
    await using upstream = await httpUpstream();
    await using gate = await gateway(
      JSON.stringify({
        frontendPolicies: { accessLog: { add: { scheme: 'request.scheme', uri: 'request.uri' } } },
        gateways: {
          default: { port: 0, tls: GOOD_TLS, routes: [{ backends: [{ host: upstream.address }] }] },
        },
      }),
    );
    await sendHttps(gate.port, { method: 'POST', path: '/a', body: 'hello', headers: { host: 'localhost' } });
    expect(upstream.received[0]).toMatchObject({ body: 'hello', method: 'POST' });
    expect(await gate.accessLine(1)).toMatchObject({ scheme: 'https', uri: 'https://localhost/a' });
  });
});

describe('certificate files', () => {
  const problems = async (tls: object, folder?: string) => {
    try {
      await using gate = await answering(tls, folder === undefined ? {} : { folder });
      return gate.log.join('');
    } catch (error) {
      return (error as Error).message;
    }
  };
  const { cert, key } = GOOD_TLS;

  test('a file that does not exist is reported with both places', async () => {
    await using folder = await temporaryFolder();
    expect(await problems({ cert: 'nothing.pem', key }, folder.path)).toBe(
      `gateways.default.tls.cert: file not found: ${join(folder.path, 'nothing.pem')}, and ${join(process.cwd(), 'nothing.pem')}`,
    );
  });

  test('paths are relative to the folder of the configuration', async () => {
    await using folder = await temporaryFolder();
    copyFileSync(cert, join(folder.path, 'a.crt'));
    copyFileSync(key, join(folder.path, 'a.key'));
    await using gate = await answering({ cert: 'a.crt', key: 'a.key' }, { folder: folder.path });
    expect((await sendHttps(gate.port)).text).toBe('reached');
  });

  test('files that cannot be used together, or at all, are reported where they are set', async () => {
    await using folder = await temporaryFolder();
    const file = (name: string, text: string): string => {
      writeFileSync(join(folder.path, name), text);
      return join(folder.path, name);
    };
    const encrypted = createPrivateKey(readFileSync(key)).export({
      type: 'pkcs8',
      format: 'pem',
      cipher: 'aes-256-cbc',
      passphrase: 'x',
    });
    const broken = readFileSync(cert, 'utf8').replace(/\n[A-Za-z0-9+/]{64}\n/, '\nAAAA\n');
    const cases: [object, RegExp][] = [
      [
        { cert, key: certificatePath('other.key') },
        /^gateways\.default\.tls\.key: the private key does not belong to the certificate$/,
      ],
      [{ cert, key: file('encrypted', String(encrypted)) }, /tls\.key: the private key is encrypted/],
      [{ cert: file('garbage', 'garbage'), key }, /tls\.cert: the file has no certificate/],
      [{ cert: file('broken', broken), key }, /tls\.cert: the file cannot be used: /],
      [
        { cert: key, key: cert },
        /tls\.cert: the file has no certificate\n.*tls\.key: the file has no private key/,
      ],
      [{ cert, key, root: key }, /tls\.root: the file has no certificate/],
      [{ cert: folder.path, key }, /tls\.cert: cannot read the file: EISDIR/],
      [{ cert, key, minTLSVersion: 'TLS_V1_3', maxTLSVersion: 'TLS_V1_2' }, /tls\.maxTLSVersion: .*older/],
      [{ cert, key, minTLSVersion: 'TLS_V1_0' }, /expected `TLS_V1_2` or `TLS_V1_3`/],
      [{ cert, key, cipherSuites: ['RC4'] }, /expected one of TLS_AES_256_GCM_SHA384/],
      [{ cert, key, mode: 'dynamic' }, /tls\.mode/],
    ];
    for (const [tls, expected] of cases) expect(await problems(tls)).toMatch(expected);
  });

  test('protocol and `tls` have to agree', async () => {
    await expect(answering(GOOD_TLS, {}, 'HTTP')).rejects.toThrow(
      '`tls` cannot be used with the protocol `HTTP`',
    );
    await expect(answering(undefined as never, {}, 'HTTPS')).rejects.toThrow('needs a certificate');
    expect(
      loadConfigText(
        JSON.stringify({ gateways: { a: { port: 0, tls: { ...GOOD_TLS, spiffe: {} } } } }),
        'test.yaml',
        {},
      ).diagnostics[0],
    ).toMatchObject({ code: 'AGW0101', help: expect.stringContaining('SPIFFE') });
  });

  test('an expired certificate is a warning, and is served', async () => {
    await using gate = await answering({ cert: certificatePath('expired.crt'), key });
    await expect(sendHttps(gate.port)).rejects.toThrow(/expired/);
    const warnings = gate.live.served.diagnostics.filter(({ code }) => code === 'AGW0320');
    expect(warnings).toMatchObject([{ severity: 'warning', path: ['gateways', 'default', 'tls', 'cert'] }]);
    expect(warnings[0]?.message).toMatch(/^the certificate has expired: /);
  });
});

/** As Unix time in seconds. */
const expires = (certificate: string): number =>
  Date.parse(new X509Certificate(readFileSync(certificate)).validTo) / 1000;

describe('changed certificate files', () => {
  const name = (port: number) =>
    new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
        resolve(socket.getPeerCertificate().subjectaltname);
        socket.destroy();
      }).on('error', reject);
    });

  test('a new certificate is used for new connections, a bad one is not', async () => {
    await using folder = await temporaryFolder();
    const [cert, key] = [join(folder.path, 'a.crt'), join(folder.path, 'a.key')];
    copyFileSync(GOOD_TLS.cert, cert);
    copyFileSync(GOOD_TLS.key, key);
    await using gate = await answering(
      { cert: 'a.crt', key: 'a.key' },
      { folder: folder.path, live: 'watched' },
    );
    await using early = await http2Client(gate.port);
    const metrics = async (name: string) =>
      (await gate.running.metrics.render()).match(new RegExp(`gw_tls_certificate_${name}\\{.*`, 'g'));
    const reloads = () => metrics('reloads_total');
    expect(await metrics('synchronized')).toEqual(['gw_tls_certificate_synchronized{file="a.crt"} 1']);

    writeFileSync(cert, 'garbage');
    await until(() => gate.log.some((line) => line.includes('the previous one stays in use')));
    const failed = gate.log.find((line) => line.includes('previous one'));
    expect(failed).toContain('file="a.crt"');
    expect(failed).toContain('setting="gateways.default.tls.cert"');
    expect(failed).toContain('problem="the file has no certificate"');
    expect(await name(gate.port)).toBe('DNS:localhost');
    expect(await reloads()).toEqual(['gw_tls_certificate_reloads_total{file="a.crt",result="failed"} 1']);
    expect(await metrics('synchronized')).toEqual(['gw_tls_certificate_synchronized{file="a.crt"} 0']);

    copyFileSync(certificatePath('other.key'), key);
    copyFileSync(certificatePath('other.crt'), cert);
    await until(async () => (await name(gate.port)) === 'DNS:other.example');
    expect((await reloads())?.join()).toMatch(/file="a\.crt",result="loaded"\} [12]/);
    // The failure counts only until the certificate was read.
    expect(await metrics('synchronized')).toEqual(['gw_tls_certificate_synchronized{file="a.crt"} 1']);
    expect(await early.send({})).toMatchObject({ text: 'reached' });
  });

  test('a changed certificate that has expired is used, with a warning', async () => {
    await using folder = await temporaryFolder();
    copyFileSync(GOOD_TLS.cert, join(folder.path, 'a.crt'));
    copyFileSync(GOOD_TLS.key, join(folder.path, 'a.key'));
    await using gate = await answering(
      { cert: 'a.crt', key: 'a.key' },
      { folder: folder.path, live: 'watched' },
    );
    const expiry = async (): Promise<number> => {
      const metrics = await gate.running.metrics.render();
      const line = /^gw_tls_certificate_expiry_timestamp_seconds\{file="a\.crt"\} (.*)$/m.exec(metrics);
      return Number(line?.[1]);
    };
    expect(await expiry()).toBe(expires(GOOD_TLS.cert));
    copyFileSync(certificatePath('expired.crt'), join(folder.path, 'a.crt'));
    const warning = (): string | undefined =>
      gate.log.find((line) => line.includes('clients will not accept the changed certificate'));
    await until(() => warning() !== undefined);
    expect(warning()).toMatch(/file="a\.crt" problem="the certificate has expired: /);
    expect(await expiry()).toBe(expires(certificatePath('expired.crt')));
  });

  test('failed handshakes are counted by reason; the first has a line in the log, further ones only at level debug', async () => {
    await using gate = await answering(GOOD_TLS, { level: 'info' });
    for (let count = 0; count < 3; count += 1) {
      const socket = connectTcp(gate.port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.write('GET / HTTP/1.1\r\n\r\n');
      await once(socket, 'close');
    }
    const failures = async () =>
      (await gate.running.metrics.render()).match(/gw_tls_handshake_failures_total\{.*/g);
    await until(
      async () => (await failures())?.[0] === 'gw_tls_handshake_failures_total{reason="protocol"} 3',
    );
    const lines = gate.log.filter((line) => line.includes('a TLS handshake failed'));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/src\.addr="127\.0\.0\.1:\d+".* count=1/);
  });

  test('client certificates and another certificate take effect at a reload', async () => {
    await using folder = await temporaryFolder();
    await using gate = await answering(GOOD_TLS, { folder: folder.path, live: 'asked' });
    const write = (tls: object | undefined) =>
      writeFileSync(
        join(folder.path, 'test.yaml'),
        JSON.stringify({
          gateways: {
            default: { port: 0, tls, routes: [{ policies: { directResponse: { body: 'reached' } } }] },
          },
        }),
      );
    write({ ...GOOD_TLS, root: certificatePath('client-authority.crt') });
    await gate.live.reload();
    await expect(sendHttps(gate.port)).rejects.toThrow();
    write({ cert: certificatePath('other.crt'), key: certificatePath('other.key') });
    await gate.live.reload();
    expect(await name(gate.port)).toBe('DNS:other.example');
  });
});
