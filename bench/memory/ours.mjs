import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { root } from '../harness/processes.mjs';
import { connect, entity, timed } from './client.mjs';

/** `agctl memory-adapter stdio --embedded`: tools, REST endpoints and store in one process. */
export async function measureOurs({ entities, calls, folder }) {
  const docs = join(folder, 'docs');
  mkdirSync(docs);
  for (let index = 0; index < entities; index += 1) {
    const { name, text } = entity(index);
    const next = `[next](${(index + 1) % entities}.md)`;
    writeFileSync(join(docs, `${index}.md`), `# ${name}\n\n${text} ${next}\n`);
  }
  const data = join(folder, 'data');
  const args = [join(root, 'bin/agctl.js'), 'memory-adapter', 'stdio', '--embedded', '--data', data];
  const filling = await connect([...args, '--docs', docs]);
  const sync = await synced(filling, entities);
  await filling.close();
  await delay(500);

  // Without the docs folder from here on, so that only the call is measured, not a sync.
  const server = await connect(args, { MEMORY_DOCS_DIR: '' });
  const figures = {
    filling: sync,
    start: server.start,
    store: await timed(calls, (index) => {
      const { name, text } = entity(entities + index);
      return server.call('ingest_document', { title: name, content: text });
    }),
    turn: await timed(calls, (index) =>
      server.call('store_episodic', { sessionId: 'bench', role: 'user', content: entity(index).text }),
    ),
    search: await timed(calls, async (index) => {
      const { unique } = entity((index * 37) % entities);
      const { structuredContent } = await server.call('search_knowledge', { query: unique });
      if (structuredContent.count === 0) throw new Error(`${unique} was not found`);
    }),
    miss: await timed(calls, (index) =>
      server.call('search_knowledge', { query: `nothing${index}like this` }),
    ),
    graph: await timed(calls, (index) =>
      server.call('query_graph', { entityId: `Topic ${(index * 37) % entities}`, maxDepth: 1 }),
    ),
    rss: server.rss(),
    disk: bytesIn(data),
  };
  await server.close();
  return figures;
}

/** Documents per second of the first sync, as counted by the backend. */
async function synced(server, entities) {
  for (;;) {
    const { structuredContent } = await server.call('ingest_document', { title: 'probe', content: 'probe' });
    const { state, added, durationMs } = structuredContent.sync;
    if (state === 'done' && added === entities) return (added / durationMs) * 1000;
    if (state !== 'running')
      throw new Error(`the sync did not do what it should: ${JSON.stringify(structuredContent)}`);
    await delay(100);
  }
}

function bytesIn(folder) {
  const bytes = readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  return (bytes / 1024 / 1024).toFixed(1);
}
