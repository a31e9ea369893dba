import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What a scripted admin server was asked. */
export interface Asked {
  readonly method: string;
  readonly url: string;
  readonly host: string;
}

export interface FakeAdmin extends AsyncDisposable {
  readonly port: number;
  /** `host:port`, for `--admin`. */
  readonly address: string;
  readonly asked: readonly Asked[];
}

export type Script = (response: ServerResponse, request: IncomingMessage) => void;

/** An admin server that does what a test tells it to, faults included. Other paths are 404. */
export async function fakeAdmin(script: Readonly<Record<string, Script>>): Promise<FakeAdmin> {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    const { method = '', url = '' } = request;
    asked.push({ method, url, host: request.headers.host ?? '' });
    const handle = script[url.replace(/\?.*/, '')];
    if (handle === undefined) response.writeHead(404).end();
    else handle(response, request);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    address: `127.0.0.1:${port}`,
    asked,
    [Symbol.asyncDispose]: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Answers with a text of a type. */
export const says =
  (body: string | Buffer, type = 'application/json', status = 200): Script =>
  (response) =>
    void response.writeHead(status, { 'content-type': type }).end(body);

/** A trace stream: these pieces, one after another, then its end. */
export const streams =
  (...pieces: readonly (string | Buffer)[]): Script =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const piece of pieces) response.write(piece);
    response.end();
  };

/** Events of a request that a rule denies, in upstream's form with our additions. */
export const DENIED: readonly object[] = [
  event(0, 'info', { type: 'requestStarted' }),
  event(40, 'info', {
    type: 'requestSnapshot',
    stage: 'initial request',
    requestState: {
      request: {
        method: 'POST',
        path: '/mcp',
        body: Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}').toString(
          'base64',
        ),
      },
      source: { address: '127.0.0.1', port: 50412 },
    },
  }),
  event(90, 'info', {
    type: 'routeSelection',
    selectedRoute: 'gateway/edge/default/tools',
    evaluatedRoutes: ['gateway/edge/default/health', 'gateway/edge/default/tools'],
    skippedRoutes: [{ route: 'gateway/edge/default/health', reason: 'the path is not /healthz' }],
    configFile: 'gateway.yaml',
    configLine: 9,
    configColumn: 7,
  }),
  event(100, 'info', {
    type: 'policySelection',
    phase: 'route',
    effectivePolicy: { cors: {}, authorization: {}, csrf: null },
  }),
  event(120, 'info', { type: 'policy', kind: 'cors', result: { type: 'skip', reason: 'no Origin header' } }),
  event(
    310,
    'info',
    {
      type: 'cel',
      expr: '"admin" in jwt.roles',
      requestState: { jwt: { sub: 'ann', roles: ['user'] } },
      result: false,
      parts: [
        { start: 0, end: 7, value: 'admin' },
        { start: 11, end: 20, value: ['user'] },
      ],
    },
    250,
  ),
  event(320, 'error', {
    type: 'authorizationResult',
    rules: [
      {
        name: '"admin" in jwt.roles',
        matched: false,
        mode: 'require',
        decided: true,
        configFile: 'gateway.yaml',
        configLine: 23,
        configColumn: 17,
      },
    ],
    result: 'deny',
  }),
  event(400, 'warn', { type: 'requestFinished', status: 403, error: 'authorization failed' }),
];

function event(
  eventEnd: number,
  severity: string,
  message: object,
  eventStart: number | null = null,
): object {
  return { eventStart, eventEnd, severity, message };
}

/** Events as server-sent events, after the sign that the gateway waits. */
export function frames(events: readonly object[]): string {
  return `: ready\n\n${events.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('')}`;
}
