import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { describe, expect, test } from 'vitest';
import { loadConfigText } from '../../../src/server/config/load.ts';
import { certificateMembers } from '../../../src/server/expressions/client-certificate.ts';
import { HeaderList } from '../../../src/server/kernel/request/header-list.ts';
import type { RequestContext } from '../../../src/server/kernel/request/request-context.ts';
import { findProblems } from '../../../src/server/runtime/find-problems.ts';
import { forwardedClient, forwardToWorker } from '../../../src/server/transport/forward.ts';
import type { Upstream } from '../../../src/server/transport/upstream/upstream.ts';
import { certificatePath, GOOD_TLS, TRUSTING } from '../../kit/certificates.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { sendHttps } from '../../kit/http2.ts';
import { send } from '../../kit/send.ts';
import { httpUpstream } from '../../kit/upstream.ts';

const CLIENT = {
  cert: readFileSync(certificatePath('client.crt')),
  key: readFileSync(certificatePath('client.key')),
};

/** A gateway that logs these expressions. */
const logging = (add: Record<string, string>, backend: string, tls?: object): Promise<TestGateway> =>
  gateway(
    JSON.stringify({
      frontendPolicies: { accessLog: { add } },
      gateways: { default: { port: 0, tls, routes: [{ name: 'all', backends: [{ host: backend }] }] } },
    }),
  );

describe('variables of the connection', () => {
  test('source has the names in the certificate of a client, and destination the name that it asked for', async () => {
    await using upstream = await httpUpstream();
    const names = {
      subject: 'source.subject',
      cn: 'source.subjectCn',
      issuer: 'source.issuer',
      names: 'source.subjectAltNames.join(" ")',
      spiffe: 'source.spiffeId',
      identity:
        '[source.identity.trustDomain, source.identity.namespace, source.identity.serviceAccount].join(" ")',
      pem: 'source.certificate.startsWith("-----BEGIN CERTIFICATE-----")',
      asked: 'destination.hostname',
      address: 'destination.address',
      port: 'string(destination.port)',
    };
    const tls = { ...GOOD_TLS, root: certificatePath('client-authority.crt') };
    await using gate = await logging(names, upstream.address, tls);
    expect((await sendHttps(gate.port, {}, { ...TRUSTING, ...CLIENT })).status).toBe(200);
    expect(await gate.accessLine(1)).toMatchObject({
      subject: 'O=Example, CN=ann',
      cn: 'ann',
      issuer: 'CN=Clients',
      names: 'spiffe://example.org/ns/a/sa/ann ann.example',
      spiffe: 'spiffe://example.org/ns/a/sa/ann',
      identity: 'example.org a ann',
      pem: 'true',
      asked: 'localhost',
      address: '127.0.0.1',
      port: String(gate.port),
    });
  });

  test('a client without TLS has no certificate, and the environment has three variables', async () => {
    await using upstream = await httpUpstream((_, response) =>
      response.writeHead(200, { 'grpc-status': '5' }).end(),
    );
    const { POD_NAME } = process.env;
    process.env['POD_NAME'] = 'gateway-7';
    try {
      await using gate = await logging(
        {
          cn: 'default(source.subjectCn, "none")',
          host: 'default(destination.hostname, "none")',
          pod: 'env.podName',
          path: 'default(env.PATH, "hidden")',
          type: 'backend.type',
          grpc: 'string(response.grpcStatus)',
          timed:
            'proxy.requestProcessingDuration >= duration("0s") && proxy.upstreamDuration > duration("0s") && proxy.responseProcessingDuration < duration("9s")',
        },
        upstream.address,
      );
      await send(`${gate.url}/`);
      expect(await gate.accessLine(1)).toMatchObject({
        cn: 'none',
        host: 'none',
        pod: 'gateway-7',
        path: 'hidden',
        type: 'static',
        grpc: '5',
        timed: 'true',
      });
    } finally {
      if (POD_NAME === undefined) delete process.env['POD_NAME'];
      else process.env['POD_NAME'] = POD_NAME;
    }
  });

  test('a rule on a certificate before its handshake is warned of', async () => {
    const rules = ['source.subjectCn == "ann"'];
    const yaml = JSON.stringify({
      frontendPolicies: { networkAuthorization: { rules } },
      gateways: { default: { port: 0, routes: [{ policies: { directResponse: { body: 'a' } } }] } },
    });
    const problems = await findProblems(loadConfigText(yaml, 'gateway.yaml', {}), { folder: '/', env: {} });
    expect(problems.map(({ code, message }) => [code, message])).toEqual([
      ['AGW0309', expect.stringContaining('the client has sent nothing yet')],
    ]);
  });

  test('names in a certificate cannot pretend to be other names', () => {
    const certificate = {
      subject: 'OU=x + CN=a\nCN=li\\0Ane\\, CN=b',
      issuer: 'CN=i',
      subjectAltName:
        'email:"x, URI:spiffe://evil/ns/a/sa/b", URI:"spiffe://good/a,b", IP Address:0:0:0:0:0:0:0:1, DirName:"CN = x, DNS:evil.example"',
      toString: () => 'pem',
    };
    expect(certificateMembers(certificate as unknown as X509Certificate)).toMatchObject({
      subject: 'OU=x + CN=a, CN=li\\0Ane\\, CN=b',
      subjectCn: 'li\nne, CN=b',
      subjectAltNames: ['spiffe://good/a,b', '::1'],
      spiffeId: 'spiffe://good/a,b',
      identity: undefined,
    });
  });

  test('a worker that gets a request from another one knows the certificate of the client', async () => {
    const certificate = new X509Certificate(CLIENT.cert);
    let sent: readonly string[] = [];
    const upstream = {
      relay: ({ headers }: { headers: readonly string[] }) => {
        sent = headers;
        return Promise.resolve({ status: 200, headers: new HeaderList(), body: undefined });
      },
    };
    const client = {
      address: '::1',
      port: 1,
      local: {},
      scheme: 'https',
      tls: { certificate, serverName: 'a.b' },
    };
    const ctx = {
      client,
      method: 'GET',
      request: {},
      headers: new HeaderList(),
      body: { forUpstream: () => undefined },
    };
    await forwardToWorker(ctx as unknown as RequestContext, upstream as unknown as Upstream);
    const received = forwardedClient(new HeaderList(sent), { socket: {} } as IncomingMessage);
    expect(received.tls?.serverName).toBe('a.b');
    expect(received.tls?.certificate?.fingerprint256).toBe(certificate.fingerprint256);
  });
});
