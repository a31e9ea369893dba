import { statSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../harness/processes.mjs';
import { connect, entity, timed } from './client.mjs';

/** The reference server: entities in one file of JSON lines, searched by substring. */
export async function measurePeer({ entities, calls, folder }) {
  const file = join(folder, 'server-memory.jsonl');
  const script = join(root, 'node_modules/@modelcontextprotocol/server-memory/dist/index.js');
  const env = { MEMORY_FILE_PATH: file };
  const record = (index) => {
    const { name, text } = entity(index);
    return { name, entityType: 'topic', observations: [text] };
  };
  const filling = await connect([script], env);
  await filling.call('create_entities', {
    entities: Array.from({ length: entities }, (_, index) => record(index)),
  });
  await filling.call('create_relations', {
    relations: Array.from({ length: entities }, (_, index) => ({
      from: `Topic ${index}`,
      to: `Topic ${(index + 1) % entities}`,
      relationType: 'next',
    })),
  });
  await filling.close();

  const server = await connect([script], env);
  const figures = {
    start: server.start,
    store: await timed(calls, (index) =>
      server.call('create_entities', { entities: [record(entities + index)] }),
    ),
    search: await timed(calls, async (index) => {
      const { unique, name } = entity((index * 37) % entities);
      const { content } = await server.call('search_nodes', { query: unique });
      if (!content[0].text.includes(name)) throw new Error(`${unique} was not found`);
    }),
    miss: await timed(calls, (index) => server.call('search_nodes', { query: `nothing${index}like this` })),
    graph: await timed(calls, (index) =>
      server.call('open_nodes', { names: [`Topic ${(index * 37) % entities}`] }),
    ),
    rss: server.rss(),
    disk: (statSync(file).size / 1024 / 1024).toFixed(1),
  };
  await server.close();
  return figures;
}
