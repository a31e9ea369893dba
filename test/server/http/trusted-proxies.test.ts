import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { gateway } from '../../kit/gateway.ts';
import { collector } from '../../kit/otlp.ts';
import { routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { recorded } from '../../kit/trace.ts';
import { until } from '../../kit/until.ts';

const LOG = { accessLog: { add: { address: 'source.address', raw: 'source.rawAddress' } } };

const trusting = (trustedProxies?: readonly string[], policies: object = {}) =>
  gateway(
    routesConfig([{ policies: { directResponse: { body: 'ok' }, ...policies } }], {
      ...(trustedProxies && { config: { http: { trustedProxies } } }),
      frontendPolicies: LOG,
    }),
  );

/** The client of a request with these lines of `X-Forwarded-For`. */
async function clientOf(
  trusted: readonly string[] | undefined,
  ...forwarded: string[]
): Promise<string | undefined> {
  await using gate = await trusting(trusted);
  await send(gate.url, { headers: { 'x-forwarded-for': forwarded } });
  const line = await gate.accessLine(1);
  expect(line['raw']).toBe('127.0.0.1');
  return line['address'];
}

/** Sends a request; returns the port of its connection. */
async function withPort(url: string, headers: Record<string, string>): Promise<{ readonly port: number }> {
  const sent = request(url, { headers, agent: false }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const port = response.socket.localPort as number;
  response.resume();
  await once(response, 'end');
  return { port };
}

describe('the client of a request', () => {
  for (const [name, trusted, forwarded, expected] of [
    ['without trusted proxies is the connection', undefined, ['1.2.3.4'], '127.0.0.1'],
    [
      'from another address than those of proxies is the connection',
      ['10.0.0.0/8'],
      ['1.2.3.4'],
      '127.0.0.1',
    ],
    ['behind a proxy is what the proxy says', ['127.0.0.1'], ['1.2.3.4'], '1.2.3.4'],
    ['is not what the client says of itself', ['127.0.0.0/8'], ['6.6.6.6, 1.2.3.4'], '1.2.3.4'],
    ['is not what the client says in a line of its own', ['127.0.0.0/8'], ['6.6.6.6', '1.2.3.4'], '1.2.3.4'],
    [
      'behind several proxies is before all of them',
      ['127.0.0.0/8', '10.0.0.0/8'],
      ['6.6.6.6, 1.2.3.4, 10.1.1.1, 10.2.2.2'],
      '1.2.3.4',
    ],
    [
      'that is a proxy itself is the first one',
      ['127.0.0.0/8', '10.0.0.0/8'],
      ['10.1.1.1, 10.2.2.2'],
      '10.1.1.1',
    ],
    [
      'is the last known one before garbage',
      ['127.0.0.0/8', '10.0.0.0/8'],
      ['1.2.3.4, unknown, 10.2.2.2'],
      '10.2.2.2',
    ],
    ['is the connection if a proxy sends garbage', ['127.0.0.0/8'], ['1.2.3.4, <script>'], '127.0.0.1'],
    ['is the connection without the header', ['127.0.0.0/8'], [], '127.0.0.1'],
    ['may have a port', ['127.0.0.0/8'], ['1.2.3.4:5678'], '1.2.3.4'],
    ['may have an IPv6 address', ['127.0.0.0/8'], ['[2001:DB8::1]:443'], '2001:db8::1'],
    [
      'may have an IPv4 address in the form of IPv6',
      ['127.0.0.0/8', '10.0.0.0/8'],
      ['6.6.6.6, ::ffff:10.1.1.1'],
      '6.6.6.6',
    ],
  ] as const)
    test(name, async () => {
      expect(await clientOf(trusted, ...forwarded)).toBe(expected);
    });

  test('is the one that rules see, and that the access log prints', async () => {
    await using gate = await trusting(['127.0.0.1'], {
      authorization: { rules: ['source.address == "1.2.3.4"'] },
    });
    const status = async (value: string) =>
      (await send(gate.url, { headers: { 'x-forwarded-for': value } })).status;
    expect(await status('1.2.3.4')).toBe(200);
    expect(await status('1.2.3.4, 5.6.7.8')).toBe(403);
    expect(await gate.accessLine(1)).toMatchObject({
      'src.addr': '1.2.3.4',
      'network.peer.address': '127.0.0.1',
    });
  });

  test('is `client.address` in spans, whose `network.peer.address` is the connection', async () => {
    await using sink = await collector('http');
    const tracing = { otlpEndpoint: sink.url, otlpProtocol: 'http', randomSampling: true };
    const gate = await gateway(
      routesConfig([{ policies: { directResponse: { body: 'ok' } } }], {
        config: { http: { trustedProxies: ['127.0.0.1'] }, tracing },
      }),
    );
    const { port } = await withPort(gate.url, { 'x-forwarded-for': '1.2.3.4:5678' });
    await until(() => gate.accessLog.length === 1);
    await gate.close();
    expect(sink.spans[0]?.attributes).toMatchObject({
      'client.address': '1.2.3.4',
      'network.peer.address': '127.0.0.1',
      'network.peer.port': port,
    });
  });

  test('without a trusted proxy has no second address in the access log', async () => {
    await using gate = await trusting();
    await send(gate.url, { headers: { 'x-forwarded-for': '1.2.3.4' } });
    expect(await gate.accessLine(1)).not.toHaveProperty(['network.peer.address']);
  });

  test('is in traces together with the address of the connection', async () => {
    await using gate = await trusting(['127.0.0.1']);
    const events = await recorded(gate, () =>
      send(gate.url, { headers: { 'x-forwarded-for': '1.2.3.4:5678' } }),
    );
    const snapshot = events.find(({ message }) => message.type === 'requestSnapshot')?.message;
    expect(snapshot).toMatchObject({
      requestState: {
        source: {
          address: '1.2.3.4',
          port: 5678,
          rawAddress: '127.0.0.1',
          rawPort: expect.any(Number),
        },
      },
    });
  });

  test('networks have to be networks', async () => {
    for (const network of ['10.0.0.0/33', '10.0.0.0/x', 'proxy', '1.2.3.4/8/8', '', '::/129'])
      await expect(trusting([network])).rejects.toThrow('expected an address or a network');
  });
});
