import { existsSync, realpathSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { fastifyStatic } from '@fastify/static';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { messageOf } from '../core/errors.ts';
import { jsonIn, membersOf, textIn } from '../core/foreign.ts';
import { LIMITS } from '../core/limits.ts';
import { type Access, EndpointCall } from './call.ts';
import { callerOf } from './caller.ts';
import { type Endpoint, methodsOf, sendProblem } from './endpoint.ts';
import { endpoints } from './endpoints/index.ts';
import { statusPage } from './endpoints/status.ts';
import { HEADERS } from './guard.ts';
import { NOT_RECORDED } from './not-recorded.ts';
import { problemAt } from './problem.ts';
import { auditRefused } from './refused-request.ts';
import type { Admin } from './sources.ts';

/** Creates what answers the requests that `guard.ts` allows. */
export async function createApp(admin: Admin): Promise<FastifyInstance> {
  const app = fastify({
    bodyLimit: LIMITS.adminBody,
    routerOptions: { ignoreTrailingSlash: true },
    // A path that cannot be decoded.
    frameworkErrors: (_error, { raw: { url = '' } }, { raw }) => {
      const { type, text } = problemAt(url, 'the path cannot be decoded: percent-encode it');
      raw.writeHead(400, { ...HEADERS, 'content-type': type }).end(text);
    },
  });
  // Endpoints parse their bodies themselves, whatever the content type.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
  app.addHook('onRequest', async (_request, reply) => void reply.headers(HEADERS));
  app.addHook('onSend', (request, reply, payload) => recordCall(request, reply, payload));
  const isBuilt = await serveWebApp(app, admin.webApp);
  // If the pages have not been built, the status page replaces them.
  const served = isBuilt ? endpoints : [...endpoints, { ...statusPage, path: '/ui' }];
  for (const endpoint of served) addEndpoint(app, endpoint, admin);
  const methods = new Map(served.map((endpoint) => [endpoint.path, methodsOf(endpoint)]));
  methods.set('/ui', ['GET']);
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.replace(/[?#].*$/, '').replace(/(?<=.)\/$/, '');
    const allowed = methods.get(path);
    const isOfApi = path.startsWith('/api/');
    if (allowed === undefined)
      return isOfApi
        ? sendProblem(reply, 404, 'the admin server has no such path: docs/admin.md lists all')
        : reply.code(404).send();
    void reply.header('allow', allowed.join(','));
    return isOfApi
      ? sendProblem(reply, 405, `${path} is called with ${allowed.join(' or ')}`)
      : reply.code(405).send();
  });
  app.setErrorHandler((error, _request, reply) => onError(error, reply, admin));
  await app.ready();
  return app;
}

/** What a method whose access nobody has thought of needs. */
const STRICTEST: Access = { role: 'editor', audit: 'unknown' };

function addEndpoint(app: FastifyInstance, endpoint: Endpoint, admin: Admin): void {
  const { path, methods, isSlow, handle } = endpoint;
  app.route({
    url: path,
    method: [...methodsOf(endpoint)],
    exposeHeadRoute: false,
    handler: async (request: FastifyRequest, reply: FastifyReply) => {
      const caller = callerOf(request.raw, admin);
      if (caller === undefined) {
        auditRefused(request.raw, admin, OF_ANOTHER_GATEWAY);
        return sendProblem(reply, 403, OF_ANOTHER_GATEWAY);
      }
      const method = methodsOf(endpoint).find((one) => one === request.method);
      const access = (method && methods[method]) ?? STRICTEST;
      const call = new EndpointCall(`${request.method} ${path}`, caller, access, admin, request.raw);
      calls.set(request, call);
      const { refusal } = call;
      if (refusal !== undefined) return sendProblem(reply, 403, refusal);
      if (isSlow === true) request.raw.socket.setTimeout(0);
      const answer = await handle(request, reply, admin, call);
      return answer ?? reply;
    },
  });
}

const OF_ANOTHER_GATEWAY =
  'the pages on a gateway (`ui`) have forwarded the request to the admin server of another gateway: set config.adminAddr to an address that no other gateway uses';

const calls = new WeakMap<FastifyRequest, EndpointCall>();

/** Writes the event of a call before its answer is sent. */
async function recordCall(request: FastifyRequest, reply: FastifyReply, payload: unknown): Promise<unknown> {
  const call = calls.get(request);
  const { statusCode } = reply;
  const outcome = statusCode < 400 ? 'done' : statusCode === 403 ? 'refused' : 'failed';
  const said = outcome === 'done' ? undefined : reasonIn(textIn(payload));
  const missing = (await call?.record(outcome, said)) ?? [];
  if (missing.length > 0) void reply.header(NOT_RECORDED, missing.join(','));
  return payload;
}

/** Characters of an answer that say why nothing was done. */
const SAID = 300;

/** Why nothing was done, in an answer of text or of JSON. */
function reasonIn(answer: string): string | undefined {
  const { message } = membersOf(membersOf(answer.startsWith('{') ? jsonIn(answer) : undefined)['error']);
  return (typeof message === 'string' ? message : answer).slice(0, SAID).split('\n')[0];
}

function onError(error: unknown, reply: FastifyReply, admin: Admin): FastifyReply {
  const { statusCode: status, code } = membersOf(error);
  const statusCode = typeof status === 'number' ? status : 500;
  const text =
    code === 'FST_ERR_CTP_BODY_TOO_LARGE'
      ? `the body is too large: at most ${LIMITS.adminBody} bytes are read`
      : admin.redactor().text(messageOf(error));
  if (statusCode >= 500) admin.log.warn('admin', 'an admin request failed', { problem: text });
  return sendProblem(reply, statusCode, text);
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
