import { createServer, type IncomingMessage, type Server, get as sendGet } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream';
import { EVENT_STREAM_HEADERS } from '../../src/core/sse.ts';
import type { TraceEvent, TraceMessage } from '../../src/core/trace/event.ts';
import { openTraceStream } from '../../src/server/observe/trace-stream.ts';
import type { TraceSubscribers } from '../../src/server/observe/trace-subscribers.ts';
import type { TestGateway } from './gateway.ts';
import { until } from './until.ts';

/** A real HTTP server that offers the trace of a gateway, as an admin server does. */
export interface TraceServer extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
}

export async function traceServer({
  traceSubscribers,
}: {
  readonly traceSubscribers: TraceSubscribers;
}): Promise<TraceServer> {
  const server: Server = createServer((request, response) => {
    const query = new URL(request.url ?? '/', 'http://localhost').searchParams;
    const opened = openTraceStream(traceSubscribers, {
      expression: query.get('expression') ?? undefined,
      follow: query.get('follow') === 'true',
      count: query.get('count') ?? undefined,
    });
    if ('text' in opened) {
      response.writeHead(opened.status, { 'content-type': 'text/plain' }).end(opened.text);
      return;
    }
    response.writeHead(200, EVENT_STREAM_HEADERS);
    pipeline(opened.stream, response, () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** A reader of one trace stream. */
export interface TraceReader extends AsyncDisposable {
  /** Everything received so far, as text. */
  readonly text: string;
  readonly events: TraceEvent[];
  readonly messages: TraceMessage[];
  readonly ended: boolean;
  readonly response: IncomingMessage;
  /** Waits for the end of the stream and gives its events. */
  all(): Promise<TraceEvent[]>;
  of<T extends TraceMessage['type']>(type: T): Extract<TraceMessage, { type: T }>[];
  leave(): void;
}

/** Opens a trace and waits until its watcher is registered. */
export async function openTrace(server: TraceServer, query = ''): Promise<TraceReader> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    sendGet(`${server.url}/debug/trace${query}`, { agent: false }, resolve).on('error', reject);
  });
  if (response.statusCode !== 200) throw new Error(`the trace was refused: ${response.statusCode}`);
  let text = '';
  let ended = false;
  response.setEncoding('utf8');
  response.on('data', (part: string) => {
    text += part;
  });
  response.on('end', () => {
    ended = true;
  });
  response.on('error', () => undefined);
  await until(() => text.startsWith(': ready\n\n'));
  const events = (): TraceEvent[] =>
    [...text.matchAll(/^data: (.*)\n\n/gm)].map(([, json]) => JSON.parse(json as string) as TraceEvent);
  const reader: TraceReader = {
    get text() {
      return text;
    },
    get events() {
      return events();
    },
    get messages() {
      return events().map(({ message }) => message);
    },
    get ended() {
      return ended;
    },
    response,
    async all() {
      await until(() => ended);
      return events();
    },
    of: (type) => events().flatMap(({ message }) => (message.type === type ? [message as never] : [])),
    leave: () => response.destroy(),
    [Symbol.asyncDispose]: () => {
      response.destroy();
      return Promise.resolve();
    },
  };
  return reader;
}

/** What a trace tells of what `act` does. */
export async function recorded(gate: TestGateway, act: () => Promise<unknown>): Promise<TraceEvent[]> {
  await using server = await traceServer(gate.running);
  await using trace = await openTrace(server);
  await act();
  return await trace.all();
}

/** Members that are never the same twice. */
const CHANGING: Readonly<Record<string, string>> = {
  // Whole seconds that remain of an hour.
  'x-ratelimit-reset': 'RESET',
  'retry-after': 'RESET',
  startTime: 'TIME',
  endTime: 'TIME',
  date: 'DATE',
  requestProcessingDuration: 'TOOK',
  upstreamDuration: 'TOOK',
  responseProcessingDuration: 'TOOK',
};

/** Events as lines that are the same on every run: without times, ports and ids, bodies as text. */
export function normalised(events: readonly TraceEvent[]): string {
  const lines = events.map(({ eventStart, eventEnd, message, ...rest }) => {
    const time = eventStart === null ? '' : ' timed';
    const scope = rest.scope === undefined ? '' : ` [${rest.scope.join(' ')}]`;
    const { type, ...members } = message;
    return `${rest.severity} ${type}${scope}${time} ${JSON.stringify(members, stable)}`;
  });
  return `${lines.join('\n')}\n`
    .replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT')
    .replaceAll(/try again in \d+ s/g, 'try again in RESET s');
}

function stable(this: unknown, key: string, value: unknown): unknown {
  if (CHANGING[key] !== undefined && typeof value === 'string') return CHANGING[key];
  if ((key === 'port' && typeof value === 'number') || key === 'configFile') return undefined;
  if (key === 'sessionId') return 'SESSION';
  const isBody = key === 'body' && typeof value === 'string';
  return isBody ? Buffer.from(value, 'base64').toString('utf8') : value;
}

const isUnsigned = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
const isText = (value: unknown): boolean => typeof value === 'string';
const orNull =
  (check: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    value === null || check(value);

/** Go types that upstream's command decodes into, by name of the member; any message may have any of them. */
const GO_TYPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  status: orNull((value) => isUnsigned(value) && (value as number) <= 65_535),
  ...Object.fromEntries(
    ['error', 'backendName', 'backendType', 'protocol', 'nativeFormat'].map((name) => [name, orNull(isText)]),
  ),
  ...Object.fromEntries(
    ['type', 'expr', 'stage', 'phase', 'kind', 'target', 'decision', 'provider', 'routeType', 'inputFormat']
      .concat(['requestModel', 'streamFormat', 'message', 'body'])
      .map((name) => [name, isText]),
  ),
  upstreamRouteType: orNull(isText),
  rules: (value) =>
    Array.isArray(value) &&
    value.every(
      ({ name, matched, mode }: Record<string, unknown>) =>
        isText(name) && typeof matched === 'boolean' && isText(mode),
    ),
  streaming: (value) => typeof value === 'boolean',
  evaluatedRoutes: Array.isArray,
  result: (value) => value !== undefined,
};

/** What upstream's command would stumble over in an event; one is enough to end its whole stream. */
export function goProblems(event: TraceEvent): string[] {
  const problems: string[] = [];
  const { eventStart, eventEnd, severity, scope, message } = event;
  if (!isUnsigned(eventEnd)) problems.push(`eventEnd ${eventEnd}`);
  if (eventStart !== null && !isUnsigned(eventStart)) problems.push(`eventStart ${eventStart}`);
  if (eventStart !== null && eventStart > eventEnd) problems.push(`ends before it starts`);
  if (!['success', 'info', 'warn', 'error'].includes(severity)) problems.push(`severity ${severity}`);
  if (scope !== undefined && !scope.every(isText)) problems.push('scope');
  for (const [name, value] of Object.entries(message))
    if (GO_TYPES[name]?.(value) === false) problems.push(`${message.type}.${name}`);
  return problems;
}
