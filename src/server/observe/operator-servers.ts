import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Path } from '../../core/diagnostic.ts';
import { isOptionalAddress, parseListenAddress } from '../../core/listen.ts';
import { ListenError, type ListeningServer, listenOn } from '../../core/listening-server.ts';
import type { Log } from '../../core/log.ts';
import { metricsAnswer, textAnswer } from './metrics/answer.ts';
import { PROTOBUF_CONTENT_TYPE, prefersProtobuf } from './metrics/protobuf.ts';

/** What the metrics and readiness servers need. */
export interface OperatorServers {
  readonly config: {
    readonly config: { readonly statsAddr?: string | undefined; readonly readinessAddr?: string | undefined };
  };
  /** Returns all metrics as OpenMetrics text. */
  renderMetrics(): Promise<string>;
  /** Returns all metrics in the Prometheus protobuf format; undefined unless histograms are native. */
  encodeMetrics(): Promise<Buffer | undefined>;
  readonly readiness: Readiness;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
}

/** The open servers of metrics and readiness. */
export interface SignalServers {
  /** Ports that they listen on, without those that another process had already. */
  readonly ports: readonly number[];
  close(): Promise<void>;
}

/**
 * Opens the metrics and readiness servers.
 *
 * @throws OperatorServerError if a configured address cannot be used; servers already open are closed first
 */
export async function openSignalServers({
  config: { config },
  renderMetrics,
  encodeMetrics,
  readiness,
  env,
  log,
}: OperatorServers): Promise<SignalServers> {
  const open: ListeningServer[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(open.map((server) => server.close()));
  };
  const servers: OperatorServer[] = [
    {
      component: 'stats',
      key: 'statsAddr',
      variable: 'STATS_ADDR',
      fallback: ':15020',
      configured: config.statsAddr,
      onRequest: statsHandler({ renderMetrics, encodeMetrics }),
    },
    {
      component: 'readiness',
      key: 'readinessAddr',
      variable: 'READINESS_ADDR',
      fallback: ':15021',
      configured: config.readinessAddr,
      onRequest: readinessHandler(readiness),
    },
  ];
  try {
    for (const server of servers) open.push(...[(await openOperatorServer(server, env, log)) ?? []].flat());
  } catch (error) {
    await close();
    throw error;
  }
  return { ports: open.flatMap(({ port }) => port ?? []), close };
}

/** A server for operators, such as the metrics server. */
export interface OperatorServer {
  /** Name in the log. */
  readonly component: string;
  /** Key of `config` that sets the address. `variable` names the environment variable that overrides it. */
  readonly key: string;
  readonly variable: string;
  readonly fallback: string;
  /** Address from the configuration. */
  readonly configured: string | undefined;
  readonly onRequest: RequestListener;
}

/** A configured address cannot be used. `path` is its key in the configuration. */
export class OperatorServerError extends Error {
  readonly path: Path;
  readonly code: string;

  constructor(message: string, path: Path, cause?: unknown) {
    super(message, { cause });
    this.name = 'OperatorServerError';
    this.path = path;
    this.code = cause instanceof ListenError ? cause.code : '';
  }
}

/**
 * Opens a server; undefined if it is off or its default address is in use (`isOptionalAddress`), which only logs a warning.
 *
 * @throws OperatorServerError if an address from the configuration or the environment cannot be used
 */
export async function openOperatorServer(
  { component, key, variable, fallback, configured, onRequest }: OperatorServer,
  env: Readonly<Record<string, string | undefined>>,
  log: Log,
): Promise<ListeningServer | undefined> {
  const fromEnv = env[variable] || undefined;
  const text = fromEnv ?? configured ?? fallback;
  const address = parseListenAddress(text);
  const path = ['config', key];
  if (address === undefined)
    throw new OperatorServerError(`${variable}: \`${text}\` is not an address`, path);
  try {
    const server = await listenOn(address, onRequest);
    if (server !== undefined)
      log.info('proxy::gateway', 'listener established', { address: server.address, component });
    return server;
  } catch (error) {
    if (!(error instanceof ListenError)) throw error;
    if (fromEnv !== undefined || !isOptionalAddress(configured, fallback))
      throw new OperatorServerError(error.message, path, error);
    log.warn('proxy::gateway', `the ${component} server did not start: ${error.message}`, {
      help: `set config.${key} to another address, or to off`,
    });
    return undefined;
  }
}

/** Tracks the startup tasks that must finish before the program is ready. */
export class Readiness {
  readonly #pending = new Set<string>();
  #hasStarted = false;

  /** Registers a task. The program is not ready until the returned function is called. */
  begin(task: string): () => void {
    this.#pending.add(task);
    return () => {
      this.#pending.delete(task);
      this.#hasStarted ||= this.#pending.size === 0;
    };
  }

  /** Names of unfinished tasks, sorted. */
  get pending(): readonly string[] {
    return [...this.#pending].sort();
  }

  /** Whether the program has been ready once; it then stays true, also during the shutdown. */
  get hasStarted(): boolean {
    return this.#hasStarted;
  }
}

/** What each probe asks. `startup` does not turn false at the shutdown: Kubernetes would then restart the container. */
const PROBES: Readonly<Record<string, { readonly text: string; isMet(readiness: Readiness): boolean }>> = {
  '/healthz/live': { text: 'live', isMet: () => true },
  '/healthz/ready': { text: 'ready', isMet: ({ pending }) => pending.length === 0 },
  '/healthz/startup': { text: 'started', isMet: ({ hasStarted }) => hasStarted },
};

/**
 * Handles GET `/healthz/live`, `/healthz/ready` and `/healthz/startup`: 200, or 500 with the unfinished tasks. Other
 * paths: 404; other methods: 405.
 */
export function readinessHandler(
  readiness: Readiness,
): (request: IncomingMessage, response: ServerResponse) => void {
  return ({ url, method }, response) => {
    const probe = PROBES[url?.split('?')[0] ?? ''];
    if (probe === undefined) response.writeHead(404).end();
    else if (method !== 'GET') response.writeHead(405, { allow: 'GET' }).end();
    else {
      const isMet = probe.isMet(readiness);
      response
        .writeHead(isMet ? 200 : 500, { 'content-type': 'text/plain; charset=utf-8' })
        .end(isMet ? `${probe.text}\n` : `not ${probe.text}, pending: ${readiness.pending.join(', ')}\n`);
    }
  };
}

/**
 * Handles `/metrics` and `/stats/prometheus`, any method, with the metrics as text, or in the protobuf format
 * if the client prefers it and histograms are native. Other paths: 404.
 */
function statsHandler({
  renderMetrics,
  encodeMetrics,
}: Pick<OperatorServers, 'renderMetrics' | 'encodeMetrics'>): (
  request: IncomingMessage,
  response: ServerResponse,
) => void {
  return (request, response) => {
    const path = request.url?.split('?')[0];
    if (path !== '/metrics' && path !== '/stats/prometheus') {
      response.writeHead(404).end();
      return;
    }
    const answer = async (): Promise<void> => {
      const encoded = prefersProtobuf(request.headers.accept) ? await encodeMetrics() : undefined;
      const { headers, body } =
        encoded === undefined
          ? await textAnswer(request.headers, await renderMetrics())
          : await metricsAnswer(request.headers, PROTOBUF_CONTENT_TYPE, encoded);
      response.writeHead(200, headers).end(body);
    };
    void answer();
  };
}
