import { describe, expect, test } from 'vitest';
import { loadConfigText } from '../../../../src/server/config/load.ts';
import { endpointsIn } from '../../../../src/server/transport/picked-endpoints.ts';
import { fromStruct, toStruct } from '../../../../src/server/transport/services/protobuf-struct.ts';
import { gateway, type TestGateway } from '../../../kit/gateway.ts';
import type { Message } from '../../../kit/grpc-service.ts';
import { picked, picking, SERVICES, servedRoute } from '../../../kit/picker.ts';
import {
  immediate,
  mutation,
  part,
  piece,
  processor,
  sentHeaders,
  type TestProcessor,
} from '../../../kit/processor.ts';
import { routesConfig } from '../../../kit/routes.ts';
import { send } from '../../../kit/send.ts';
import { until } from '../../../kit/until.ts';
import { type HttpUpstream, httpUpstream } from '../../../kit/upstream.ts';

const model = (name: string, status = 200): Promise<HttpUpstream> =>
  httpUpstream((_, response, { body }) => {
    response.statusCode = status;
    response.end(`${name} ${body}`);
  });

/** An address where nothing listens. */
async function goneAddress(): Promise<string> {
  const gone = await model('gone');
  await gone.close();
  return gone.address;
}

const served = ({ address }: TestProcessor, policies?: object): Promise<TestGateway> =>
  gateway(routesConfig([servedRoute(address, policies)], SERVICES));

const post = { method: 'POST', body: '{"model":"a"}' };

/** What the picker was told about the endpoint that has answered, for each call. */
const reported = ({ calls }: TestProcessor): unknown[] =>
  calls.map(({ received }) => {
    const about = received.find(({ request }) => request === 'response_headers');
    const metadata = about?.metadata_context?.filter_metadata['envoy.lb'];
    return metadata && fromStruct(metadata)['x-gateway-destination-endpoint-served'];
  });

describe('inferenceRouting', () => {
  test('inferenceRouting sends a request to the endpoint that the picker names, and reports who served it', async () => {
    await using a = await model('a');
    await using b = await model('b');
    await using picker = await processor(picking(() => picked(b.address)));
    await using gate = await served(picker);
    const reply = await send(`${gate.url}/v1/chat/completions`, {
      ...post,
      headers: { host: 'models.test' },
    });
    expect(reply).toMatchObject({ status: 200, text: `b ${post.body}` });
    expect(a.received).toHaveLength(0);
    expect(b.received[0]?.headers).toMatchObject({
      host: 'models.test',
      'content-length': String(post.body.length),
      'x-gateway-destination-endpoint': b.address,
    });
    const [call] = picker.calls;
    expect(call?.received[0].protocol_config).toEqual({ request_body_mode: 4, response_body_mode: 4 });
    expect(sentHeaders(call?.received[0])).toMatchObject({ ':path': '/v1/chat/completions' });
    expect(reported(picker)).toEqual([b.address]);
    expect(await gate.accessLine(1)).toMatchObject({
      endpoint: b.address,
      'inferencepool.selected_endpoint': b.address,
    });
    await until(() => picker.open === 0);
  });

  test('inferenceRouting picks an endpoint for requests without a body, also from dynamic metadata', async () => {
    await using a = await model('a');
    await using picker = await processor(
      picking(() => ({
        ...part('request_headers'),
        dynamic_metadata: toStruct({ 'envoy.lb': { 'x-gateway-destination-endpoint': a.address } }),
      })),
    );
    await using gate = await served(picker);
    expect(await send(gate.url)).toMatchObject({ status: 200, text: 'a ' });
    expect(reported(picker)).toEqual([a.address]);
  });

  // agentgateway/agentgateway#3144: clients must not choose the destination themselves.
  test('inferenceRouting ignores a destination of the client', async () => {
    await using a = await model('a');
    await using b = await model('b');
    let answer: Message = part('request_headers');
    await using picker = await processor(picking(() => answer));
    await using gate = await served(picker);
    const request = { ...post, headers: { 'X-Gateway-Destination-Endpoint': a.address } };
    expect(await send(gate.url, request)).toMatchObject({ status: 503 });
    answer = picked(b.address);
    expect(await send(gate.url, request)).toMatchObject({ status: 200, text: `b ${post.body}` });
    expect(a.received).toHaveLength(0);
    expect(sentHeaders(picker.calls[0]?.received[0])).not.toHaveProperty('x-gateway-destination-endpoint');
  });

  // agentgateway/agentgateway#1444, kubernetes-sigs/gateway-api-inference-extension#761: an ordered list of endpoints.
  test('inferenceRouting tries the next of several endpoints if one cannot be connected to', async () => {
    await using b = await model('b');
    const gone = await goneAddress();
    await using picker = await processor(picking(() => picked('nonsense', gone, ` ${b.address}`)));
    await using gate = await served(picker);
    for (const request of [post, {}])
      expect(await send(gate.url, request)).toMatchObject({
        status: 200,
        text: expect.stringMatching(/^b /),
      });
    expect(reported(picker)).toEqual([b.address, b.address]);
    expect(await gate.accessLine(1)).toMatchObject({
      endpoint: b.address,
      'inferencepool.selected_endpoint': gone,
    });
  });

  test('inferenceRouting does not send a request twice that an endpoint has received', async () => {
    await using a = await httpUpstream((request) => request.socket.destroy());
    await using b = await model('b');
    await using picker = await processor(picking(() => picked(a.address, b.address)));
    await using gate = await served(picker);
    expect(await send(gate.url, post)).toMatchObject({ status: 502 });
    expect(b.received).toHaveLength(0);
    await until(() => picker.open === 0);
  });

  test('inferenceRouting answers 503 if none of the endpoints can be connected to', async () => {
    const [one, other] = [await goneAddress(), await goneAddress()];
    await using picker = await processor(picking(() => picked(one, other)));
    await using gate = await served(picker);
    expect(await send(gate.url, post)).toMatchObject({ status: 503 });
    expect((await gate.accessLine(1))['error.detail']).toContain(other);
    await until(() => picker.open === 0);
  });

  // kubernetes-sigs/gateway-api-inference-extension#3003: a repeated call goes on with the list of its backend.
  test('inferenceRouting goes on with the next endpoint when retry repeats a call', async () => {
    await using a = await model('a', 503);
    await using b = await model('b');
    await using picker = await processor(picking(() => picked(a.address, b.address)));
    await using gate = await served(picker, { retry: { attempts: 1, codes: [503] } });
    expect(await send(gate.url, post)).toMatchObject({ status: 200, text: `b ${post.body}` });
    expect(a.received).toHaveLength(1);
    // The first call of the picker has no response to report.
    expect(reported(picker)).toEqual([undefined, b.address]);
    await until(() => picker.open === 0);
  });

  test('inferenceRouting repeats a call at the same endpoint if the picker names no other', async () => {
    await using a = await model('a', 503);
    await using picker = await processor(picking(() => picked(a.address)));
    await using gate = await served(picker, { retry: { attempts: 2, codes: [503] } });
    expect(await send(gate.url, post)).toMatchObject({ status: 503, text: `a ${post.body}` });
    expect(a.received.map(({ body }) => body)).toEqual([post.body, post.body, post.body]);
    expect(reported(picker)).toEqual([undefined, undefined, a.address]);
    await until(() => picker.open === 0);
  });

  // kubernetes-sigs/gateway-api-inference-extension#3003: a response is reported to the picker of its backend only.
  test('inferenceRouting ends the call of the picker if another backend answers', async () => {
    await using a = await model('a', 503);
    await using b = await model('b');
    await using picker = await processor(picking(() => picked(a.address, a.address)));
    const route = servedRoute(picker.address, { retry: { attempts: 1, codes: [503] } });
    for (const host of [b.address, await goneAddress()]) {
      const backends = [...(route.backends ?? []), { host, weight: 1 }];
      await using gate = await gateway(routesConfig([{ ...route, backends }], SERVICES));
      for (let count = 0; count < 8; count += 1) await send(gate.url, post);
      await until(() => picker.open === 0);
    }
    expect(a.received.length).toBeGreaterThan(0);
    for (const endpoint of reported(picker)) expect([undefined, a.address]).toContain(endpoint);
  });

  // kubernetes-sigs/gateway-api-inference-extension#761: 503 without endpoints, 429 for requests that are shed.
  test.each([429, 503])('inferenceRouting passes on the answer %i of the picker', async (status) => {
    await using a = await model('a');
    await using picker = await processor(picking(() => immediate(status, 'later', { 'retry-after': '1' })));
    await using gate = await served(picker);
    const reply = await send(gate.url, post);
    expect(reply).toMatchObject({ status, text: 'later' });
    expect(reply.headers).toMatchObject({ 'retry-after': '1' });
    expect(a.received).toHaveLength(0);
    await until(() => picker.open === 0);
  });

  test('inferenceRouting lets the picker change the body and the response', async () => {
    await using a = await model('a');
    await using picker = await processor((message, call) => {
      const name: string = message.request;
      if (name === 'response_headers')
        call.answer(part(name, { header_mutation: mutation({ 'x-served-by': 'a' }) }));
      if (!name.endsWith('_body') || !message[name].end_of_stream) return;
      if (name === 'request_body') call.answer(picked(a.address));
      call.answer(piece(name, `new ${name}`, true));
    });
    await using gate = await served(picker);
    const reply = await send(gate.url, post);
    expect(reply).toMatchObject({ status: 200, text: 'new response_body' });
    expect(reply.headers).toMatchObject({ 'x-served-by': 'a' });
    expect(a.received[0]).toMatchObject({ body: 'new request_body' });
  });

  test('inferenceRouting streams a large body to one endpoint', async () => {
    await using a = await httpUpstream((_, response, { body }) => response.end(String(body.length)));
    await using picker = await processor((message, call) => {
      const name: string = message.request;
      if (name === 'request_headers') call.answer(picked(a.address));
      if (name === 'response_headers') call.answer(part(name));
      if (name.endsWith('_body')) call.answer(piece(name, message[name].body, message[name].end_of_stream));
    });
    await using gate = await served(picker);
    const body = 'ab'.repeat(2_000_000);
    expect(await send(gate.url, { method: 'POST', body })).toMatchObject({ status: 200, text: '4000000' });
  });
});

describe('a picker that', () => {
  const WRONG: readonly (readonly [string, Message])[] = [
    ['names nothing', part('request_headers')],
    ['names nonsense', picked('nonsense')],
    ['names a host name', picked('localhost:80')],
    ['names a path', picked('127.0.0.1:80/admin')],
    ['names the address of cloud credentials', picked('169.254.169.254:80', '[::ffff:169.254.169.254]:80')],
    ['names no text', { ...part('request_headers'), dynamic_metadata: toStruct({ 'envoy.lb': 5 }) }],
  ];

  test.each(WRONG)('%s: 503', async (_, answer) => {
    await using picker = await processor(picking(() => answer));
    await using gate = await served(picker);
    expect(await send(gate.url, post)).toMatchObject({
      status: 503,
      text: 'no endpoint is available for the request',
    });
    expect(await gate.accessLine(1)).toMatchObject({
      'error.detail': expect.stringMatching(/the endpoint picker named no endpoint/),
      reason: 'UpstreamFailure',
    });
    await until(() => picker.open === 0);
  });

  test.each(['ends the call', 'fails', 'answers what it was not asked', 'does not answer'])(
    '%s: 500, and nothing is sent',
    async (what) => {
      await using a = await model('a');
      await using picker = await processor((message, call) => {
        if (message.request !== 'request_headers') return;
        if (what === 'ends the call') call.end();
        if (what === 'fails') call.fail();
        if (what === 'answers what it was not asked') call.answer(part('response_headers'));
      });
      await using gate = await gateway(routesConfig([servedRoute(picker.address)], SERVICES), {
        limits: { processorTimeout: 200 },
      });
      expect(await send(gate.url, post)).toMatchObject({ status: 500, text: 'external processing failed' });
      expect(a.received).toHaveLength(0);
      await until(() => picker.open === 0);
    },
  );

  test('is not there: 500', async () => {
    const address = await goneAddress();
    await using gate = await gateway(routesConfig([servedRoute(address)], SERVICES));
    expect(await send(gate.url, post)).toMatchObject({ status: 500, text: 'external processing failed' });
  });

  test('names the gateway itself: the request does not go round', async () => {
    let address = '';
    await using picker = await processor(picking(() => picked(address)));
    await using gate = await served(picker);
    address = `127.0.0.1:${gate.port}`;
    expect(await send(gate.url, post)).toMatchObject({ status: 500, text: 'no valid backends' });
    expect(picker.calls.length).toBeLessThanOrEqual(2);
  });
});

test('endpoints of a picker are addresses with a port', () => {
  expect(endpointsIn('10.0.0.5:8000, [fd00::1]:1 ,10.0.0.5:8000,127.0.0.1:65535')).toEqual([
    '10.0.0.5:8000',
    '[fd00::1]:1',
    '127.0.0.1:65535',
  ]);
  const wrong = [
    '10.0.0.5',
    '10.0.0.5:0',
    '10.0.0.5:65536',
    '10.0.0:1',
    'fd00::1:1',
    '[10.0.0.5]:1',
    '[fe80::1%eth0]:1',
    '[fe80::1]:1',
    '[ff02::1]:1',
    '[::]:1',
    '0.0.0.0:1',
    '239.1.1.1:1',
    '255.255.255.255:1',
    '[::ffff:169.254.1.1]:1',
    '[64:ff9b::169.254.169.254]:80',
    '[fd00:ec2::254]:80',
    '10.0.0.5:1 ;rm',
    'a@10.0.0.5:1',
  ];
  for (const text of wrong) expect({ text, endpoints: endpointsIn(text) }).toEqual({ text, endpoints: [] });
  const many = Array.from({ length: 20 }, (_, index) => `10.0.0.${index + 1}:80`);
  expect(endpointsIn(many.join(','))).toEqual(many.slice(0, 16));
});

describe('the configuration of inferenceRouting', () => {
  const problems = (backend: object, more: object = SERVICES): string => {
    const { diagnostics } = loadConfigText(routesConfig([{ backends: [backend] }], more), 'test.yaml', {});
    return diagnostics.map(({ message, help }) => `${message} ${help}`).join('\n');
  };
  const SERVICE = { name: 'default/my-model', port: 8000 };
  const policies = {
    inferenceRouting: { endpointPicker: { host: '127.0.0.1:9002' }, destinationMode: 'passthrough' },
  };

  test('what an example of agentgateway says is accepted', () => {
    expect(problems({ service: SERVICE, policies })).toBe('');
  });

  const refused: readonly (readonly [string, object, object | undefined, string])[] = [
    ['an unknown service', { service: SERVICE, policies }, {}, 'unknown service `default/my-model`'],
    [
      'an unknown port',
      { service: { ...SERVICE, port: 1 }, policies },
      undefined,
      'the service `default/my-model` has no port 1',
    ],
    [
      'a service without a picker',
      { service: SERVICE },
      undefined,
      'the endpoints of a service are not known',
    ],
    [
      'a picker without a service',
      { host: '127.0.0.1:1', policies },
      undefined,
      '`inferenceRouting` belongs to backends with `service`',
    ],
    [
      'destinations of a control plane',
      {
        service: SERVICE,
        policies: { inferenceRouting: { ...policies.inferenceRouting, destinationMode: 'validated' } },
      },
      undefined,
      'only `passthrough` is supported',
    ],
    [
      'a failure mode, which agentgateway refuses too',
      {
        service: SERVICE,
        policies: { inferenceRouting: { ...policies.inferenceRouting, failureMode: 'failOpen' } },
      },
      undefined,
      'failureMode',
    ],
    [
      'a service with virtual addresses',
      { service: SERVICE, policies },
      { services: [{ ...SERVICES.services[0], vips: ['/10.0.0.1'] }] },
      'virtual addresses need a mesh',
    ],
    [
      'two services with one name',
      { service: SERVICE, policies },
      { services: [...SERVICES.services, ...SERVICES.services] },
      'two services are called `default/my-model`',
    ],
  ];
  test.each(refused)('%s is refused', async (_, backend, more, message) => {
    const config = routesConfig([{ backends: [backend] }], more ?? SERVICES);
    await expect(gateway(config)).rejects.toThrow(message);
  });
});
