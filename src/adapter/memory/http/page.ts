import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance } from 'fastify';

/** The built dashboard, next to the compiled program. */
const BUILT = fileURLToPath(new URL('../../../web/memory', import.meta.url));

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
export async function addPages(app: FastifyInstance, folder: string = BUILT): Promise<void> {
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
