import { expect, test } from 'vitest';
import { GOOD_TLS } from '../../kit/certificates.ts';
import { sendHttps } from '../../kit/http2.ts';
import { overHttp, send } from '../../kit/network-authz.ts';
import { httpUpstream } from '../../kit/upstream.ts';
import { workerGateway } from '../../kit/workers.ts';

test.each([undefined, GOOD_TLS])('networkExtAuthz decides about connections of workers', async (tls) => {
  let status = 200;
  await using service = await httpUpstream((_, response) => response.writeHead(status).end());
  const routes = [{ policies: { directResponse: { body: 'ok' } } }];
  await using gate = await workerGateway({
    frontendPolicies: overHttp(service.address),
    gateways: { default: { port: 0, tls, routes } },
  });
  const call = () => (tls === undefined ? send(gate.url) : sendHttps(Number(new URL(gate.url).port)));
  for (let count = 0; count < 4; count += 1) expect(await call()).toMatchObject({ text: 'ok' });
  expect(service.received).toHaveLength(4);
  status = 403;
  await expect(call()).rejects.toThrow();
  expect(service.received).toHaveLength(5);
});
