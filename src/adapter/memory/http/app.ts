import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import fastifyStatic from '@fastify/static';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { AppError } from '../../../core/errors.ts';
import { membersOf, stringIn } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Log, LogFields } from '../../../core/log.ts';
import { MEMORY_API_LIMITS } from '../../../core/memory-limits.ts';
import { PACKAGE_ROOT } from '../../../core/package-root.ts';
import type { Caller } from '../../caller.ts';
import type { Memories } from '../memories.ts';
import { type Access, checkCaller, checkHost, checkTrusted, namespaceOf } from './access.ts';
import type { Answer, Endpoint, ValidRequest } from './endpoint.ts';
import { endpoints } from './endpoints/index.ts';
import { checked, errorBody, MemoryError } from './memory-error.ts';

export interface AppParts {
  readonly memories: Memories;
  readonly access: Access;
  readonly log: Log;
  /** Folder of the built dashboard. Default: the one in this package. */
  readonly pages?: string | undefined;
}

const SERVICE_NAME = 'memory-backend';
const PREFIX = '/api/memory';
const REQUEST_ID = 'x-request-id';

const SECURITY_HEADERS = {
  'content-security-policy':
    "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
};

/** The REST interface of the memory backend, its health check and its pages. Does not listen yet. */
export async function createMemoryApp({ memories, access, log, pages }: AppParts): Promise<FastifyInstance> {
  const app = fastify({
    bodyLimit: MEMORY_API_LIMITS.requestBytes,
    requestTimeout: LIMITS.requestTimeout,
    keepAliveTimeout: LIMITS.keepAliveTimeout,
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: 4 * MEMORY_API_LIMITS.nameLength },
    genReqId: ({ headers }) => {
      const given = headers[REQUEST_ID];
      return typeof given === 'string' && /^[\w.:-]{1,100}$/.test(given) ? given : randomUUID();
    },
  });
  acceptEmptyBodies(app);
  app.addHook('onRequest', async ({ id, url }, reply) => {
    reply.headers({ ...SECURITY_HEADERS, [REQUEST_ID]: id });
    if (url.startsWith(PREFIX)) reply.header('cache-control', 'no-store');
  });
  boundRequests(app);
  const callers = new WeakMap<FastifyRequest, Caller>();
  app.addHook('onRequest', async (request) => {
    const { headers, socket, routeOptions } = request;
    checkHost({ localAddress: socket.localAddress, headers }, access);
    // Checks the matched route, not the URL as sent: `/api//memory` must not bypass the key.
    if (routeOptions.url?.startsWith(PREFIX)) callers.set(request, checkCaller(headers, access));
  });
  app.setErrorHandler<Error>((error, request, reply) => answerError(error, request, reply, log));
  app.setNotFoundHandler((_request, reply) =>
    reply.code(404).send(errorBody('not_found', 'unknown endpoint')),
  );
  app.get('/health', () => ({ status: 'healthy', service: SERVICE_NAME }));
  for (const endpoint of endpoints)
    addEndpoint(app, endpoint, (request) => {
      const caller = callers.get(request);
      if (caller === undefined) throw new Error('the caller of an endpoint was not identified');
      const { audit } = endpoint;
      const audited = async (answer: Promise<Answer>, namespace?: string): Promise<Answer> => {
        const { body, ...rest } = await answer;
        if (audit !== undefined) logDeletion(log, audit, body, { ...whoIs(request, caller), namespace });
        return { body, ...rest };
      };
      if (endpoint.isForAll) {
        checkTrusted(caller);
        return (call) => audited(endpoint.run({ ...call, memories }));
      }
      const namespace = namespaceOf(caller, access);
      return (call) =>
        audited(
          memories.use(namespace, (memory) => endpoint.run({ ...call, memory })),
          namespace,
        );
    });
  await addPages(app, pages);
  return app;
}

/** Whose key a request has, and where it came from. */
function whoIs({ socket, headers }: FastifyRequest, { isTrusted, namespace }: Caller): LogFields {
  const key = headers.authorization === undefined ? 'none' : isTrusted ? 'main' : `of ${namespace}`;
  return { 'actor.key': key, from: socket.remoteAddress };
}

/**
 * Says in the log that something was deleted, whatever its levels: how much, and not what, because what was to be forgotten would be in the
 * log. A preview deletes nothing.
 */
function logDeletion(log: Log, action: string, answer: object, fields: LogFields): void {
  const { deleted, counts, name } = membersOf(answer);
  if (deleted !== true) return;
  log.always('audit', action, { outcome: 'done', ...fields, target: stringIn(name), deleted: counts });
}

/** @param permit the endpoint for the caller of a request; throws if the caller may not use it */
function addEndpoint(
  app: FastifyInstance,
  { method, path, params, query, body, requestBytes }: Endpoint,
  permit: (request: FastifyRequest) => (call: ValidRequest<never, never, never>) => Promise<Answer>,
): void {
  app.route({
    method,
    url: `${PREFIX}${path}`,
    ...(requestBytes === undefined ? {} : { bodyLimit: requestBytes }),
    handler: async (request, reply) => {
      const gone = new AbortController();
      reply.raw.once('close', () => {
        if (!reply.raw.writableFinished) gone.abort(new Error('the caller has disconnected'));
      });
      const run = permit(request);
      const answering = run({
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schemas of the endpoint have checked the parts
        params: (params === undefined ? undefined : checked(params, request.params, 'path')) as never,
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as above
        query: (query === undefined ? undefined : checked(query, request.query, 'query')) as never,
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as above
        body: (body === undefined ? undefined : checked(body, request.body, 'body')) as never,
        headers: request.headers,
        signal: gone.signal,
      });
      const answer = await answering.catch((error: unknown) => {
        if (error === gone.signal.reason) return undefined;
        throw error;
      });
      // Nobody is there to answer, and nothing has failed.
      if (answer === undefined) return reply.hijack();
      if (answer.body instanceof Readable) reply.type(answer.type ?? 'application/octet-stream');
      return reply.code(answer.status ?? 200).send(answer.body);
    },
  });
}

/** `POST /ingest/docs` may be sent without a body, with or without a content type. */
function acceptEmptyBodies(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') done(null, undefined);
    else void parse(request, String(body), done);
  });
  app.addContentTypeParser('application/x-ndjson', { parseAs: 'string' }, (_request, body, done) =>
    done(null, body),
  );
}

/** Requests beyond `requestsInFlight` are refused immediately rather than queued. */
function boundRequests(app: FastifyInstance): void {
  let inFlight = 0;
  app.addHook('onRequest', (_request, { raw }, done) => {
    if (inFlight >= MEMORY_API_LIMITS.requestsInFlight) {
      done(new MemoryError('memory_busy', 'too many concurrent requests, try again in a second'));
      return;
    }
    inFlight += 1;
    raw.once('close', () => {
      inFlight -= 1;
    });
    done();
  });
}

function answerError(
  error: Error & { statusCode?: number },
  request: FastifyRequest,
  reply: FastifyReply,
  log: Log,
): FastifyReply {
  if (error instanceof AppError) {
    const { status, code, message } = error;
    if (status >= 500) {
      log.error('memory::backend', 'request failed', {
        id: request.id,
        url: request.routeOptions.url,
        problem: error.detail ?? message,
      });
    }
    if (status === 401) reply.header('www-authenticate', 'Bearer');
    if (status === 503) reply.header('retry-after', '1');
    return reply
      .code(status)
      .send(errorBody(code, message, error instanceof MemoryError ? error.details : {}));
  }
  const { statusCode = 500 } = error;
  if (statusCode < 500) {
    const message = statusCode === 415 ? WRONG_TYPE : error.message;
    return reply.code(statusCode).send(errorBody(codeOf(statusCode), message));
  }
  log.error('memory::backend', 'internal error', { id: request.id, problem: error.stack ?? error.message });
  return reply.code(500).send(errorBody('internal', 'internal error'));
}

const WRONG_TYPE =
  'expected the header `content-type: application/json`, or `application/x-ndjson` for JSON Lines to import';

/** Errors that Fastify raises itself: a body that is too large, has another type, or is not JSON. */
function codeOf(status: number): string {
  if (status === 413) return 'body_too_large';
  return status === 415 ? 'unsupported_media_type' : 'invalid';
}

/** The built dashboard. */
const BUILT = fileURLToPath(new URL('dist/web/memory', PACKAGE_ROOT));

const PAGE = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Memory</title></head>
<body>
<h1>Memory</h1>
<p>The dashboard is not part of this build. Its data is available at:</p>
<ul>
<li><a href="/api/memory/stats">/api/memory/stats</a></li>
<li><a href="/api/memory/graph">/api/memory/graph</a></li>
<li><a href="/api/memory/sessions">/api/memory/sessions</a></li>
<li><a href="/api/memory/ingest/status">/api/memory/ingest/status</a></li>
</ul>
</body>
</html>
`;

/**
 * Serves the dashboard at `/ui`, or a page with links if it was not built. It contains no data, so it requires no key.
 * Every page below `/ui` gets the same document; names of files change with their content.
 */
async function addPages(app: FastifyInstance, folder: string = BUILT): Promise<void> {
  app.get('/', (_request, reply) => reply.redirect('/ui/'));
  const isBuilt = existsSync(`${folder}/index.html`);
  if (isBuilt) {
    await app.register(fastifyStatic, {
      root: `${folder}/assets`,
      prefix: '/ui/assets/',
      immutable: true,
      // The folder also contains compressed files.
      preCompressed: true,
      maxAge: '365d',
    });
  }
  const document = isBuilt ? readFileSync(`${folder}/index.html`, 'utf8') : PAGE;
  for (const path of ['/ui', '/ui/*']) {
    app.get(path, (_request, reply) =>
      reply.type('text/html').header('cache-control', 'no-cache').send(document),
    );
  }
}
