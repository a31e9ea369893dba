import { existsSync, realpathSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { fastifyStatic } from '@fastify/static';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { messageOf } from '../core/errors.ts';
import { membersOf, textIn } from '../core/foreign.ts';
import { LIMITS } from '../core/limits.ts';
import type { Endpoint } from './endpoint.ts';
import { endpoints } from './endpoints/index.ts';
import { statusPage } from './endpoints/status.ts';
import { HEADERS } from './guard.ts';
import type { Admin } from './sources.ts';

/** Creates what answers the requests that `guard.ts` allows. */
export async function createApp(admin: Admin): Promise<FastifyInstance> {
  const app = fastify({
    bodyLimit: LIMITS.adminBody,
    routerOptions: { ignoreTrailingSlash: true },
    // A path that cannot be decoded.
    frameworkErrors: (_error, _request, { raw }) => void raw.writeHead(400, HEADERS).end(),
  });
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
  const { statusCode: status } = membersOf(error);
  const statusCode = typeof status === 'number' ? status : 500;
  const text = admin.redactor().text(messageOf(error));
  if (statusCode >= 500) admin.log.warn('admin', 'an admin request failed', { problem: text });
  return reply.code(statusCode).type('text/plain; charset=utf-8').send(`${text}\n`);
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
  const root = realpathSync(folder);
  app.get('/ui', { exposeHeadRoute: false }, (_request, reply) => reply.sendFile('index.html'));
  app.get('/ui/*', { exposeHeadRoute: false }, async (request, reply) => {
    const name = textIn(membersOf(request.params)['*']);
    const isFile = name.includes('.') || name.startsWith('assets/');
    if (isFile && !(await isInside(root, name))) return reply.callNotFound();
    // Names of built files change with their content.
    if (name.startsWith('assets/'))
      return reply.sendFile(name, { immutable: true, maxAge: '365d', cacheControl: true });
    return reply.sendFile(isFile ? name : 'index.html');
  });
  return true;
}

/** Whether a folder itself has this file: neither a path out of the folder nor a link has it. */
async function isInside(root: string, name: string): Promise<boolean> {
  const path = join(root, name);
  return path.startsWith(root + sep) && (await realpath(path).catch(() => undefined)) === path;
}
