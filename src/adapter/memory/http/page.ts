import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance } from 'fastify';

/** Where the built dashboard is, beside the compiled program. */
const BUILT = fileURLToPath(new URL('../../../web/memory', import.meta.url));

const PAGE = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Memory</title></head>
<body>
<h1>Memory</h1>
<p>The dashboard is not part of this build. What it shows is at:</p>
<ul>
<li><a href="/api/memory/stats">/api/memory/stats</a></li>
<li><a href="/api/memory/graph">/api/memory/graph</a></li>
<li><a href="/api/memory/sessions">/api/memory/sessions</a></li>
<li><a href="/api/memory/ingest/status">/api/memory/ingest/status</a></li>
</ul>
</body>
</html>
`;

/** The dashboard at `/ui`, or a page with links where it was not built. Holds no data, so it needs no key. */
export async function addPages(app: FastifyInstance, folder: string = BUILT): Promise<void> {
  app.get('/', (_request, reply) => reply.redirect('/ui/'));
  if (!existsSync(`${folder}/index.html`)) {
    for (const path of ['/ui', '/ui/'])
      app.get(path, (_request, reply) => reply.type('text/html').send(PAGE));
    return;
  }
  await app.register(fastifyStatic, { root: folder, prefix: '/ui/', redirect: true });
}
