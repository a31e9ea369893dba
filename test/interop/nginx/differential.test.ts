import { afterAll, beforeAll, expect, test } from 'vitest';
import { askPolicy } from '../../kit/authz.ts';
import { parseAccessLine, type TestGateway } from '../../kit/gateway.ts';
import { proxyGateway } from '../../kit/routes.ts';
import { until } from '../../kit/until.ts';
import { type HttpUpstream, httpUpstream } from '../../kit/upstream.ts';
import { CORPUS } from './corpus.ts';
import { type Arrived, converse, inPieces, LAST, type Recorder, recordingBackend } from './exchange.ts';
import { startNginx } from './nginx.ts';

// Requests that never become complete are among the cases.
const SHORT = { headersTimeout: 1_000, requestTimeout: 1_000, connectionsCheckingInterval: 250 };

/** Cases in which a request gets further here than at nginx, and why that is right. */
const LOOSER: Readonly<Record<string, string>> = {
  'request line: "GET / RTSP/1.0"':
    "Node's parser takes RTSP for HTTP and does not tell; the backend gets the same request in HTTP/1.1",
  'Content-Length: "4\\t"':
    'a tab around a value is white space (RFC 9110 section 5.6.3); nginx knows spaces only',
  'Transfer-Encoding: "\\tchunked"': 'the same',
  'Connection: "\\"close\\""':
    'nginx looks for the letters of `close` anywhere; here the next request is answered, too',
  'Connection: "close;x"': 'the same',
};

let backend: Recorder;
let service: HttpUpstream;
let nginx: Awaited<ReturnType<typeof startNginx>>;
let gate: TestGateway;
beforeAll(async () => {
  backend = await recordingBackend();
  service = await httpUpstream();
  nginx = await startNginx(backend.port);
  gate = await proxyGateway(
    `127.0.0.1:${backend.port}`,
    { ...askPolicy(service.address), requestHeaderModifier: { set: { 'X-Front': 'agctl' } } },
    { frontendPolicies: { accessLog: { add: { seen: 'request.pathAndQuery' } } } },
    { limits: SHORT },
  );
});
afterAll(async () => {
  await gate.close();
  await nginx[Symbol.asyncDispose]();
  await service.close();
  await backend[Symbol.asyncDispose]();
});

const ofFront = (requests: readonly Arrived[], front: string): Arrived[] =>
  requests.filter((request) => request.front === front);

/** What makes two requests the same one, whatever the spelling of their path. */
const essence = ({ method, body, target }: Arrived): string =>
  `${method} ${target === '/last' ? 'last' : 'case'} ${JSON.stringify(body)}`;

test(`the nginx comparison has at least 200 different requests (${CORPUS.length})`, () => {
  expect(new Set(CORPUS.map(([, bytes]) => bytes)).size).toBeGreaterThanOrEqual(200);
  const names = new Set(CORPUS.map(([name]) => name));
  expect(names.size).toBe(CORPUS.length);
  expect(Object.keys(LOOSER).filter((name) => !names.has(name))).toEqual([]);
});

test.each(CORPUS)('the gateway and nginx treat the same request alike: %s', async (name, bytes) => {
  const first = {
    arrived: backend.arrived.length,
    asked: service.received.length,
    logged: gate.accessLog.length,
  };
  const [ours, theirs] = await Promise.all([
    converse({ port: gate.port, host: '127.0.0.1' }, [bytes + LAST]),
    converse({ path: nginx.path }, [bytes + LAST]),
  ]);
  const arrived = backend.arrived.slice(first.arrived);
  const here = ofFront(arrived, 'agctl');
  const there = ofFront(arrived, 'nginx');
  expect(backend.malformed.filter((bytes) => !/^x-front: nginx/im.test(bytes))).toEqual([]);

  // What was decided on is what arrived.
  const answered = (): Record<string, string>[] =>
    gate.accessLog
      .slice(first.logged)
      .map(parseAccessLine)
      .filter((line) => line['http.status'] === '200');
  await until(() => answered().length >= here.length);
  const targets = here.map(({ target }) => target);
  expect(answered().map(({ seen }) => seen)).toEqual(targets);
  expect(answered().map((line) => line['http.path'])).toEqual(targets);
  const asked = service.received.slice(first.asked).map(({ target }) => target);
  expect(asked).toEqual(expect.arrayContaining(targets));

  // Nothing arrived from here that nginx held back.
  const allowed = there.map(essence);
  const further = here.map(essence).filter((each) => !allowed.includes(each));
  const report = { further, ours, theirs };
  if (Object.hasOwn(LOOSER, name)) expect(report.further, 'it is no longer looser').not.toEqual([]);
  else expect(report).toEqual({ ...report, further: [] });

  // How the network cuts the bytes changes nothing.
  const before = backend.arrived.length;
  await converse({ port: gate.port, host: '127.0.0.1' }, inPieces(bytes));
  expect(ofFront(backend.arrived.slice(before), 'agctl')).toEqual(here);
});

test('enough requests of the nginx comparison are accepted to compare their paths', () => {
  const targets = ofFront(backend.arrived, 'agctl').filter(({ target }) => target !== '/last');
  expect(targets.length).toBeGreaterThan(100);
});
