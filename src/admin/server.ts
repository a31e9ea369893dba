import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { messageOf } from '../core/errors.ts';
import { LIMITS } from '../core/limits.ts';
import { isLoopback, type ListenAddress } from '../core/listen.ts';
import { HEADERS, refusal } from './guard.ts';
import { LogLevels } from './log-levels.ts';
import { type AdminLimits, type OpenAddress, openAddress } from './open.ts';
import { OpenStreams } from './open-streams.ts';
import { problemAt } from './problem.ts';
import { auditRefused } from './refused-request.ts';
import type { Admin, AdminSources } from './sources.ts';

export interface AdminServer {
  /** The open addresses, formatted for display. */
  readonly addresses: readonly string[];
  /** Origin of the first address; undefined for a unix socket. */
  readonly url: string | undefined;
  /** Ends streams and open responses, and closes the server. */
  close(): Promise<void>;
}

/** The open addresses of an admin server that does not answer yet, except with 503. */
export interface OpenAdmin {
  /** Answers requests from now on. */
  serve(sources: AdminSources): AdminServer;
  /** Closes the addresses, if the server does not come to answer. */
  close(): Promise<void>;
}

/**
 * Opens the addresses of the admin server, before there is anything to show.
 *
 * @throws AdminAddressError if an address cannot be opened, after closing the others
 */
export async function openAdmin(
  address: Exclude<ListenAddress, { kind: 'off' }>,
  limits: AdminLimits = LIMITS,
): Promise<OpenAdmin> {
  let handle: RequestListener = notYet;
  const opened = await openAddress(address, (request, response) => handle(request, response), limits);
  return {
    serve(sources) {
      const levels = new LogLevels(sources.log);
      const admin: Admin = {
        ...sources,
        served: () => sources.served(),
        stop: () => sources.stop(),
        redactor: () => sources.served().runtime.redactor(),
        levels,
        streams: new OpenStreams(),
        isUnixSocket: address.kind === 'unix',
        startedAt: Date.now(),
        connections: () => connectionsOf(opened),
      };
      const handler = new Handler(admin);
      handle = handler.handle;
      const stopRecording = sources.gateway.recordRequests();
      announce(opened, sources);
      return {
        addresses: opened.map(({ text }) => text),
        url: opened[0]?.url,
        async close() {
          stopRecording();
          levels.close();
          admin.streams.end();
          await Promise.all(opened.map(closeServer));
          await handler.close();
        },
      };
    },
    async close() {
      await Promise.all(opened.map(closeServer));
    },
  };
}

/** Opens the admin server. @throws as `openAdmin` */
export async function startAdmin(
  address: Exclude<ListenAddress, { kind: 'off' }>,
  sources: AdminSources,
  limits?: AdminLimits,
): Promise<AdminServer> {
  return (await openAdmin(address, limits)).serve(sources);
}

function notYet(request: IncomingMessage, response: ServerResponse): void {
  request.resume();
  const { type, text } = problemAt(request.url ?? '', 'the gateway is starting: try again in a moment');
  response.writeHead(503, { ...HEADERS, 'content-type': type, connection: 'close' }).end(text);
}

async function connectionsOf(opened: readonly OpenAddress[]): Promise<number> {
  const counts = await Promise.all(
    opened.map(
      ({ server }) =>
        new Promise<number>((resolve) => server.getConnections((_error, count = 0) => resolve(count))),
    ),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Answers requests. What does so is loaded at the first one that is allowed: 300 modules, for nobody most of the time. */
class Handler {
  readonly #admin: Admin;
  #loading: Promise<FastifyInstance> | undefined;

  constructor(admin: Admin) {
    this.#admin = admin;
  }

  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    const hosts = new Set(this.#admin.served().config.config.adminHosts.map((host) => host.toLowerCase()));
    const refused = refusal(request, hosts, this.#admin.isUnixSocket);
    if (refused === undefined) {
      void this.#answer(request, response);
      return;
    }
    this.#admin.log.debug('admin', 'a request was rejected', {
      host: request.headers.host,
      origin: request.headers.origin,
    });
    auditRefused(request, this.#admin, refused);
    request.resume();
    const { type, text } = problemAt(request.url ?? '', refused);
    response.writeHead(403, { ...HEADERS, 'content-type': type, connection: 'close' }).end(text);
  };

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      this.#loading ??= import('./app.ts').then(({ createApp }) => createApp(this.#admin));
      (await this.#loading).routing(request, response);
    } catch (error) {
      this.#admin.log.warn('admin', 'the admin pages cannot be loaded', { problem: messageOf(error) });
      response.destroy();
    }
  }

  async close(): Promise<void> {
    // A failure has been logged.
    await (await this.#loading?.catch(() => undefined))?.close();
  }
}

function announce(opened: readonly OpenAddress[], sources: AdminSources): void {
  const { log } = sources;
  for (const { text, server } of opened) {
    log.info('admin', 'listener established', { address: text, component: 'admin' });
    const address = server.address();
    if (typeof address !== 'object' || address === null || isLoopback(address.address)) continue;
    if (sources.served().config.config.adminRoles !== undefined) continue;
    log.warn('admin', 'the admin server has no authentication, and other machines can reach it', {
      address: text,
      help: 'set config.adminAddr to 127.0.0.1:15000, restrict access to the port, or set config.adminRoles',
    });
  }
}

/** Open responses and streams get a moment to end regularly. */
function closeServer({ server }: OpenAddress): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => server.closeAllConnections(), LIMITS.adminDrain);
    // Connections that become idle meanwhile would be kept for the client's next request.
    const idle = setInterval(() => server.closeIdleConnections(), 20);
    server.close(() => {
      clearTimeout(cut);
      clearInterval(idle);
      resolve();
    });
    server.closeIdleConnections();
  });
}
