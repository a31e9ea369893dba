import { existsSync } from 'node:fs';
import { fastifyStatic } from '@fastify/static';
import type { FastifyInstance } from 'fastify';

/**
 * Serves the built pages at `/ui`, if they exist. A path below it without a dot is a page and gets `index.html`; any
 * other path is a file, or status 404.
 */
export async function serveWebApp(app: FastifyInstance, folder: string | undefined): Promise<boolean> {
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
