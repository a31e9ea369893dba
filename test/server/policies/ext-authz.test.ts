import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { askPolicy, DAEMON_HOST, identityDaemon, whoisPolicy } from '../../kit/authz.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { answeringGateway, proxyGateway, routesConfig } from '../../kit/routes.ts';
import { send, valuesOf } from '../../kit/send.ts';
import { type Answer, type HttpUpstream, httpUpstream, refusingPort } from '../../kit/upstream.ts';

const DENIED = { status: 403, text: 'external authorization failed' };

describe('extAuthz identity lookup over a unix socket', () => {
  let daemon: HttpUpstream;
  let service: HttpUpstream;
  let gate: TestGateway;
  beforeAll(async () => {
    daemon = await identityDaemon({
      '127.0.0.7': { node: 'laptop.mesh.example.', login: 'ada@example.com' },
    });
    service = await httpUpstream();
    const add = { node: 'extauthz.node', login: 'extauthz.login' };
    gate = await proxyGateway(
      service.address,
      { extAuthz: whoisPolicy(daemon.address) },
      { frontendPolicies: { accessLog: { add } } },
    );
  });
  afterAll(async () => {
    await Promise.all([gate.close(), daemon.close(), service.close()]);
  });

  test('extAuthz passes a known client and logs its identity on every line', async () => {
    const before = gate.accessLog.length;
    for (const round of [1, 2]) {
      const reply = await send(gate.url, { from: '127.0.0.7' });
      expect({ status: reply.status, text: reply.text }).toEqual({ status: 200, text: 'ok' });
      expect(await gate.accessLine(before + round)).toMatchObject({
        'http.status': '200',
        node: 'laptop.mesh.example.',
        login: 'ada@example.com',
      });
    }
    const { method, target, headers, body } = daemon.received.at(-1) ?? {};
    expect({ method, target, body }).toEqual({
      method: 'GET',
      target: '/localapi/v0/whois?addr=127.0.0.7',
      body: '',
    });
    expect(headers?.host).toBe(DAEMON_HOST);
  });

  test('extAuthz rejects a client without an identity and logs none', async () => {
    const before = gate.accessLog.length;
    const reached = service.received.length;
    expect(await send(gate.url, { method: 'POST', body: 'x' })).toMatchObject(DENIED);
    expect(service.received).toHaveLength(reached);
    const line = await gate.accessLine(before + 1);
    expect(line).toMatchObject({ 'http.status': '403', error: DENIED.text, reason: 'ExtAuth' });
    expect(line).not.toHaveProperty('node');
  });

  test('extAuthz ignores forwarding headers of the client', async () => {
    const claims = { 'x-forwarded-for': '127.0.0.7', forwarded: 'for=127.0.0.7', 'x-real-ip': '127.0.0.7' };
    expect(await send(gate.url, { headers: claims })).toMatchObject(DENIED);
    expect(daemon.received.at(-1)?.target).toBe('/localapi/v0/whois?addr=127.0.0.1');
    expect(await send(gate.url, { headers: { host: 'other.example' }, from: '127.0.0.7' })).toMatchObject({
      status: 200,
    });
  });

  test("extAuthz sees the client's IPv6 address and an unmapped IPv4-mapped address", async () => {
    await send(`http://[::1]:${gate.port}`);
    expect(daemon.received.at(-1)?.target).toBe('/localapi/v0/whois?addr=::1');
    await send(`http://[::ffff:127.0.0.1]:${gate.port}`);
    expect(daemon.received.at(-1)?.target).toBe('/localapi/v0/whois?addr=127.0.0.1');
  });
});

describe('extAuthz configuration', () => {
  const refusal = async (extAuthz: object): Promise<string> => {
    const error = await answeringGateway({ extAuthz }).then(
      async (gate) => void (await gate.close()),
      (thrown: Error) => thrown,
    );
    return error?.message ?? 'accepted';
  };
  const metadata = { who: 'json(response.body).who' };

  test('extAuthz.metadata is accepted next to host and under protocol.http with the same effect', async () => {
    await using service = await httpUpstream((_, response) => response.end('{"who":"ada"}'));
    for (const policy of [
      askPolicy(service.address, { metadata }),
      askPolicy(service.address, {}, { metadata }),
    ]) {
      await using gate = await answeringGateway({
        ...policy,
        directResponse: { bodyExpression: 'extauthz.who' },
      });
      expect((await send(gate.url)).text).toBe('ada');
    }
  });

  test('extAuthz reports metadata in both places as an error at extAuthz.metadata', async () => {
    const { extAuthz } = askPolicy('127.0.0.1:1', { metadata }, { metadata }) as { extAuthz: object };
    expect(await refusal(extAuthz)).toBe(
      'gateways.default.routes.0.policies.extAuthz.metadata: duplicate `metadata`',
    );
  });

  test('extAuthz rejects a host that is not a service address', async () => {
    const http = { protocol: { http: {} } };
    expect(await refusal({ host: 'authz', ...http })).toContain('extAuthz.host: `authz` is not the address');
    expect(await refusal({ host: `unix:/${'x'.repeat(200)}`, ...http })).toContain('is not a socket path');
    expect(await refusal({ host: 'unix:relative.sock', ...http })).toContain('is not a socket path');
  });
});

describe('extAuthz response of the service', () => {
  const answering = async (status: number, headers = {}, body = ''): Promise<HttpUpstream> =>
    httpUpstream((_, response) => response.writeHead(status, headers).end(body));

  test.each([200, 201, 204, 299])(
    'extAuthz passes the request when the service answers %i',
    async (status) => {
      await using service = await answering(status);
      await using gate = await answeringGateway(askPolicy(service.address));
      expect(await send(gate.url)).toMatchObject({ status: 200, text: 'reached' });
    },
  );

  test.each([300, 301, 400, 401, 403, 404, 500, 503])(
    'extAuthz rejects with 403 and the fixed text when the service answers %i',
    async (status) => {
      await using service = await answering(status, { location: 'http://evil.example/' }, 'internal words');
      await using gate = await answeringGateway(askPolicy(service.address, {}, { failureMode: 'allow' }));
      const reply = await send(gate.url);
      expect(reply).toMatchObject(DENIED);
      expect(reply.headers).not.toHaveProperty('location');
      expect((await gate.accessLine(1))['error.detail']).toBe(`the authorization service answered ${status}`);
    },
  );

  test('extAuthz forwards only the listed response headers to the backend', async () => {
    await using service = await answering(200, {
      'x-user': 'ada',
      'x-roles': ['a', 'b'],
      'set-cookie': 's=1',
      'x-other': '1',
      'transfer-encoding': 'chunked',
    });
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(
      backend.address,
      askPolicy(service.address, { includeResponseHeaders: ['X-User', 'x-roles', 'x-group'] }),
    );
    const forged = { 'x-user': 'root', 'x-group': 'admins', 'x-kept': 'k' };
    const reply = await send(gate.url, { headers: forged });
    const { headers, rawHeaders = [] } = backend.received[0] ?? {};
    expect(headers).toMatchObject({ 'x-user': 'ada', 'x-kept': 'k' });
    expect(valuesOf({ rawHeaders }, 'x-roles')).toEqual(['a', 'b']);
    // A client must not be able to set a value that only the service may set.
    expect(headers).not.toHaveProperty('x-group');
    for (const name of ['set-cookie', 'x-other', 'transfer-encoding'])
      expect(headers).not.toHaveProperty(name);
    expect(reply.headers).not.toHaveProperty('set-cookie');
  });

  test('extAuthz metadata is readable by rules, rate limits and the log, and omits failed entries', async () => {
    await using service = await answering(200, { 'x-tier': 'gold' }, '{"groups":["ops"],"n":3}');
    const metadata = {
      groups: 'json(response.body).groups',
      tier: 'response.headers["x-tier"]',
      code: 'response.code',
      missing: 'json(response.body).nothing.here',
    };
    await using gate = await answeringGateway(
      {
        ...askPolicy(service.address, {}, { metadata }),
        authorization: { rules: ['"ops" in extauthz.groups', '!has(extauthz.missing)'] },
        directResponse: { bodyExpression: 'extauthz.tier + " " + string(extauthz.code)' },
      },
      {
        frontendPolicies: { accessLog: { add: { groups: 'extauthz.groups', missing: 'extauthz.missing' } } },
      },
    );
    expect(await send(gate.url)).toMatchObject({ status: 200, text: 'gold 200' });
    const line = await gate.accessLine(1);
    expect(line['groups']).toBe('["ops"]');
    expect(line).not.toHaveProperty('missing');
  });

  test('extAuthz.redirect redirects clients on 401 and 403 only', async () => {
    const statuses = [401, 403, 404];
    const answer: Answer = (_, response) =>
      response.writeHead(statuses.shift() ?? 200, { 'x-login': 'https://login.example/' }).end();
    await using service = await httpUpstream(answer);
    const redirect = 'response.headers["x-login"] + "?back=" + url.encode(request.pathAndQuery)';
    await using gate = await answeringGateway(askPolicy(service.address, { redirect }));
    for (const _ of [401, 403]) {
      const reply = await send(`${gate.url}/a?b=c`);
      expect(reply.status).toBe(302);
      expect(reply.headers.location).toBe('https://login.example/?back=%2Fa%3Fb%3Dc');
    }
    expect(await send(gate.url)).toMatchObject(DENIED);
    expect(await send(gate.url)).toMatchObject({ status: 200 });
  });

  test('extAuthz denies when the redirect expression fails', async () => {
    await using service = await answering(401);
    for (const redirect of ['response.headers["x-login"]', '42', '"a\\r\\nb"']) {
      await using gate = await answeringGateway(askPolicy(service.address, { redirect }));
      const reply = await send(gate.url);
      expect(reply).toMatchObject(DENIED);
      expect(reply.headers).not.toHaveProperty('location');
    }
  });

  test('extAuthz denyResponse: passthrough forwards the response with a few of its headers', async () => {
    await using service = await answering(
      429,
      { 'content-type': 'application/json', 'retry-after': '7', 'set-cookie': 's=1', 'x-internal': '1' },
      '{"why":"slow down"}',
    );
    await using gate = await answeringGateway(
      askPolicy(service.address, {}, { denyResponse: 'passthrough' }),
    );
    const reply = await send(gate.url);
    expect(reply).toMatchObject({ status: 429, text: '{"why":"slow down"}' });
    expect(reply.headers).toMatchObject({ 'content-type': 'application/json', 'retry-after': '7' });
    expect(reply.headers).not.toHaveProperty('set-cookie');
    expect(reply.headers).not.toHaveProperty('x-internal');
    expect(await gate.accessLine(1)).toMatchObject({ 'http.status': '429', error: DENIED.text });
  });
});

describe('extAuthz failureMode', () => {
  const modes = async (address: string): Promise<unknown[]> => {
    const replies = [];
    for (const failureMode of ['deny', 'allow', { denyWithStatus: 503 }]) {
      await using gate = await answeringGateway(askPolicy(address, {}, { failureMode }));
      const { status, text } = await send(gate.url);
      replies.push({ status, text });
    }
    return replies;
  };
  const EXPECTED = [DENIED, { status: 200, text: 'reached' }, { ...DENIED, status: 503 }];

  test('extAuthz.failureMode decides when nothing listens at the service address', async () => {
    expect(await modes(`127.0.0.1:${await refusingPort()}`)).toEqual(EXPECTED);
  });

  test('extAuthz.failureMode decides when the service closes the connection before a response', async () => {
    await using service = await httpUpstream((request) => request.socket.destroy());
    expect(await modes(service.address)).toEqual(EXPECTED);
  });

  test('extAuthz.failureMode defaults to deny, and an allowed failure has no metadata', async () => {
    const address = `127.0.0.1:${await refusingPort()}`;
    await using denying = await answeringGateway(askPolicy(address));
    expect(await send(denying.url)).toMatchObject(DENIED);
    await using allowing = await answeringGateway({
      ...askPolicy(address, {}, { failureMode: 'allow', metadata: { who: 'response.code' } }),
      authorization: { rules: ['!has(extauthz.who)'] },
    });
    expect((await send(allowing.url)).status).toBe(200);
  });

  test('extAuthz failures do not affect other routes', async () => {
    const policies = askPolicy(`127.0.0.1:${await refusingPort()}`);
    const route = (path: string, more: object) => ({
      name: path.slice(1),
      matches: [{ path: { exact: path } }],
      policies: { directResponse: {}, ...more },
    });
    await using gate = await gateway(routesConfig([route('/guarded', policies), route('/open', {})]));
    expect((await send(`${gate.url}/guarded`)).status).toBe(403);
    expect((await send(`${gate.url}/open`)).status).toBe(200);
  });
});
