import { existsSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { fastifyStatic } from '@fastify/static';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { messageOf } from '../core/errors.ts';
import { LIMITS } from '../core/limits.ts';
import { isLoopback, type ListenAddress } from '../core/listen.ts';
import type { Redactor } from '../core/redact.ts';
import { redactorOf } from '../server/config/redact.ts';
import type { CurrentConfig } from '../server/runtime/reload/live-config.ts';
import type { Endpoint } from './endpoint.ts';
import { endpoints } from './endpoints/index.ts';
import { statusPage } from './endpoints/status.ts';
import { refusal } from './guard.ts';
import { LogLevels } from './log-levels.ts';
import { type OpenAddress, openAddress } from './open.ts';
import type { Admin, AdminSources } from './sources.ts';

export interface AdminServer {
  /** The open addresses, formatted for display. */
  readonly addresses: readonly string[];
  /** Origin of the first address; undefined for a unix socket. */
  readonly url: string | undefined;
  /** Ends streams and open responses, and closes the server. */
  close(): Promise<void>;
}

/**
 * Opens the admin server.
 *
 * @throws AdminAddressError if an address cannot be opened, after closing the others
 */
export async function startAdmin(
  address: Exclude<ListenAddress, { kind: 'off' }>,
  sources: AdminSources,
): Promise<AdminServer> {
  const { log } = sources;
  const levels = new LogLevels(log);
  let opened: readonly OpenAddress[] = [];
  const admin: Admin = {
    ...sources,
    served: () => sources.served(),
    stop: () => sources.stop(),
    redactor: redactors(sources),
    levels,
    streams: new Set(),
    startedAt: Date.now(),
    connections: () => connectionsOf(opened),
  };
  const app = await createApp(admin);
  opened = await openAddress(address, handlerOf(app, admin)).catch(async (error: unknown) => {
    await app.close();
    throw error;
  });
  const stopRecording = sources.gateway.recordRequests();
  announce(opened, sources);
  return {
    addresses: opened.map(({ text }) => text),
    url: opened[0]?.url,
    async close() {
      stopRecording();
      levels.close();
      for (const stream of admin.streams) stream.end();
      await Promise.all(opened.map(closeServer));
      await app.close();
    },
  };
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

/** One redactor per active configuration. */
function redactors({ served, env }: AdminSources): () => Redactor {
  const known = new WeakMap<CurrentConfig['source'], Redactor>();
  return () => {
    const { source } = served();
    const found = known.get(source) ?? redactorOf(source, env);
    known.set(source, found);
    return found;
  };
}

/** On every response: no page may frame, sniff or cache it, and pages load nothing from other origins. */
const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const;

async function createApp(admin: Admin): Promise<FastifyInstance> {
  const app = fastify({ bodyLimit: LIMITS.adminBody, routerOptions: { ignoreTrailingSlash: true } });
  // Endpoints parse their bodies themselves, whatever the content type.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
  app.addHook('onRequest', async (_request, reply) => void reply.headers(HEADERS));
  const isBuilt = await serveWebApp(app, admin.webApp);
  // If the pages have not been built, the status page replaces them.
  const served = isBuilt ? endpoints : [...endpoints, { ...statusPage, path: '/ui' }];
  for (const endpoint of served) addEndpoint(app, endpoint, admin);
  const methods = new Map(served.map(({ path, methods: allowed }) => [path, allowed]));
  methods.set('/ui', ['GET']);
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.replace(/[?#].*$/, '').replace(/(?<=.)\/$/, '');
    const allowed = methods.get(path);
    if (allowed === undefined) return reply.code(404).send();
    return reply.code(405).header('allow', allowed.join(',')).send();
  });
  app.setErrorHandler((error, _request, reply) => onError(error, reply, admin));
  await app.ready();
  return app;
}

function addEndpoint(app: FastifyInstance, { path, methods, isSlow, handle }: Endpoint, admin: Admin): void {
  app.route({
    url: path,
    method: [...methods],
    exposeHeadRoute: false,
    handler: async (request: FastifyRequest, reply: FastifyReply) => {
      if (isSlow === true) request.raw.socket.setTimeout(0);
      const answer = await handle(request, reply, admin);
      return answer ?? reply;
    },
  });
}

function onError(error: unknown, reply: FastifyReply, admin: Admin): FastifyReply {
  const { statusCode = 500 } = error as { statusCode?: number };
  const text = admin.redactor().text(messageOf(error));
  if (statusCode >= 500) admin.log.warn('admin', 'an admin request failed', { problem: text });
  return reply.code(statusCode).type('text/plain; charset=utf-8').send(`${text}\n`);
}

function handlerOf(app: FastifyInstance, admin: Admin) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    const hosts = new Set(admin.served().config.config.adminHosts.map((host) => host.toLowerCase()));
    const refused = refusal(request, hosts);
    if (refused === undefined) {
      app.routing(request, response);
      return;
    }
    admin.log.debug('admin', 'a request was rejected', {
      host: request.headers.host,
      origin: request.headers.origin,
    });
    request.resume();
    response
      .writeHead(403, { ...HEADERS, 'content-type': 'text/plain; charset=utf-8', connection: 'close' })
      .end(refused);
  };
}

function announce(opened: readonly OpenAddress[], { log }: AdminSources): void {
  for (const { text, server } of opened) {
    log.info('admin', 'listener established', { address: text, component: 'admin' });
    const address = server.address();
    if (typeof address !== 'object' || address === null || isLoopback(address.address)) continue;
    log.warn('admin', 'the admin server has no authentication, and other machines can reach it', {
      address: text,
      help: 'set config.adminAddr to 127.0.0.1:15000, or restrict access to the port',
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

/**
 * Serves the built pages at `/ui`, if they exist. A path below it without a dot is a page and gets `index.html`; any
 * other path is a file, or status 404.
 */
async function serveWebApp(app: FastifyInstance, folder: string | undefined): Promise<boolean> {
  if (folder === undefined || !existsSync(`${folder}/index.html`)) return false;
  await app.register(fastifyStatic, {
    root: folder,
    serve: false,
    cacheControl: false,
    dotfiles: 'deny',
    // The folder also contains compressed scripts and style sheets.
    preCompressed: true,
  });
  app.get('/ui', { exposeHeadRoute: false }, (_request, reply) => reply.sendFile('index.html'));
  app.get('/ui/*', { exposeHeadRoute: false }, (request, reply) => {
    const name = (request.params as { '*': string })['*'];
    const isFile = name.includes('.') || name.startsWith('assets/');
    // Names of built files change with their content.
    if (name.startsWith('assets/'))
      return reply.sendFile(name, { immutable: true, maxAge: '365d', cacheControl: true });
    return reply.sendFile(isFile ? name : 'index.html');
  });
  return true;
}
