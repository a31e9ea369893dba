import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadConfigText } from '../../../src/server/config/load.ts';
import { authorizationService } from '../../../src/server/policies/envoy/authorization-service.ts';
import { rateLimitService } from '../../../src/server/policies/envoy/rate-limit-service.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway } from '../../kit/gateway.ts';
import { grpcService } from '../../kit/grpc-service.ts';
import { answeringGateway, routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

const named = (host: string, policies?: object): object => ({
  backends: [{ name: 'service', host, ...(policies && { policies }) }],
});

const HTTP_AUTHZ = { extAuthz: { backend: 'service', protocol: { http: {} } } };
const DESCRIPTORS = [{ entries: [{ key: 'path', value: 'request.path' }] }];

describe('a service of a policy as a reference to a top-level backend', () => {
  test('requestMirror copies requests to a named backend with its credential', async () => {
    await using copy = await httpUpstream();
    const mirror = { requestMirror: { backend: { backend: 'service' }, percentage: 1 } };
    const auth = { backendAuth: { key: 'of-the-backend' } };
    await using gate = await answeringGateway({}, { ...named(copy.address, auth) });
    await using mirrored = await gateway(
      routesConfig([{ policies: mirror, backends: [{ backend: 'service' }] }], named(copy.address, auth)),
    );
    expect(await send(gate.url)).toMatchObject({ text: 'reached' });
    expect(copy.received).toHaveLength(0);
    await send(`${mirrored.url}/a`);
    await until(() => copy.received.length === 2);
    for (const { target, headers } of copy.received)
      expect({ target, key: headers.authorization }).toEqual({ target: '/a', key: 'Bearer of-the-backend' });
  });

  test('extAuthz asks a named backend over HTTP with its credential', async () => {
    await using service = await httpUpstream();
    const more = named(service.address, { backendAuth: { key: 'of-the-backend' } });
    await using gate = await answeringGateway(HTTP_AUTHZ, more);
    expect(await send(gate.url)).toMatchObject({ text: 'reached' });
    expect(service.received.map(({ headers }) => headers.authorization)).toEqual(['Bearer of-the-backend']);
  });

  test('extAuthz asks a named backend over gRPC', async () => {
    const denied = { status: { code: 7 }, denied_response: { status: { code: 401 }, body: 'not today' } };
    await using service = await grpcService(authorizationService, 'Check', () => denied);
    await using gate = await answeringGateway({ extAuthz: { backend: 'service' } }, named(service.address));
    expect(await send(gate.url)).toMatchObject({ status: 401, text: 'not today' });
  });

  test('remoteRateLimit asks a named backend', async () => {
    await using service = await grpcService(rateLimitService, 'ShouldRateLimit', () => ({ overall_code: 2 }));
    const limit = { backend: 'service', domain: 'shop', descriptors: DESCRIPTORS };
    await using gate = await answeringGateway({ remoteRateLimit: limit }, named(service.address));
    expect(await send(gate.url)).toMatchObject({ status: 429 });
    expect(service.received).toMatchObject([{ domain: 'shop' }]);
  });

  test('policies of the reference replace those of the named backend', async () => {
    await using service = await httpUpstream();
    const own = { ...HTTP_AUTHZ.extAuthz, policies: { backendAuth: { key: 'own' } } };
    const more = named(service.address, { backendAuth: { key: 'of-the-backend' } });
    await using gate = await answeringGateway({ extAuthz: own }, more);
    await send(gate.url);
    expect(service.received.map(({ headers }) => headers.authorization)).toEqual(['Bearer own']);
  });

  test('a reload that changes only the policies of a named backend changes the calls of the service', async () => {
    await using service = await httpUpstream();
    const route = { policies: { directResponse: { body: 'reached' }, ...HTTP_AUTHZ } };
    const config = (key: string): string =>
      routesConfig([route], named(service.address, { backendAuth: { key } }));
    await using folder = await temporaryFolder();
    await using gate = await gateway(config('first'), { folder: folder.path, live: 'asked' });
    await send(gate.url);
    writeFileSync(join(folder.path, 'test.yaml'), config('second'));
    await gate.live.reload();
    await send(gate.url);
    expect(service.received.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer first',
      'Bearer second',
    ]);
  });

  const refusals: [string, object, object, string][] = [
    ['an unknown backend', HTTP_AUTHZ, {}, 'unknown backend `service`'],
    [
      'a backend that is no host',
      HTTP_AUTHZ,
      { backends: [{ name: 'service', mcp: { targets: [{ name: 'a', mcp: { host: 'http://a.test/' } }] } }] },
      'the backend `service` is of the kind `mcp`, but a service is a `host`',
    ],
    [
      'a backend with a policy for requests',
      HTTP_AUTHZ,
      named('127.0.0.1:1', { requestHeaderModifier: { set: { a: 'b' } } }),
      'the policy `requestHeaderModifier` of the backend `service` does not apply to calls of a service',
    ],
    [
      'a backend with a credential of the client',
      HTTP_AUTHZ,
      named('127.0.0.1:1', { backendAuth: { passthrough: {} } }),
      'the policy `backendAuth` of the backend `service` does not apply to calls of a service',
    ],
    [
      'an address and a reference',
      { extAuthz: { host: '127.0.0.1:1', backend: 'service' } },
      named('127.0.0.1:1'),
      'expected exactly one of `host` and `backend`',
    ],
    [
      'neither an address nor a reference',
      { requestMirror: { backend: {}, percentage: 1 } },
      {},
      'expected exactly one of `host` and `backend`',
    ],
  ];
  test.each(refusals)('a service that names %s is refused', async (_, policies, more, message) => {
    await expect(answeringGateway(policies, more)).rejects.toThrow(message);
  });

  test('a service of Kubernetes is refused with what to write instead', () => {
    const policies = { extAuthz: { service: { name: 'ns/a.test', port: 80 } } };
    const { diagnostics } = loadConfigText(routesConfig([{ policies }]), 'test.yaml', {});
    expect(diagnostics).toContainEqual(
      expect.objectContaining({
        code: 'AGW0101',
        help: 'services exist only with a Kubernetes control plane: write `host: name:port`',
      }),
    );
  });
});
