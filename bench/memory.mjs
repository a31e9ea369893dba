// `npm run bench memory`: the memory service over stdio, compared with @modelcontextprotocol/server-memory.
import { parseArgs } from 'node:util';
import { scratchFolder } from './harness/processes.mjs';
import { measureOurs } from './memory/ours.mjs';
import { measurePeer } from './memory/server-memory.mjs';

const { values } = parseArgs({
  options: {
    entities: { type: 'string', default: '10000' },
    calls: { type: 'string', default: '200' },
  },
});
const size = { entities: Number(values.entities), calls: Number(values.calls), folder: scratchFolder() };

const say = (text) => process.stdout.write(`${text}\n`);

const ours = await measureOurs(size);
const peer = await measurePeer(size);
const micro = (value) => (value === undefined ? '–' : `${(value / 1000).toFixed(1)} ms`);
const ratio = (name) =>
  peer[name] === undefined || ours[name] === undefined
    ? ''
    : `${(peer[name].p50 / ours[name].p50).toFixed(1)} x`;

say(`\n${size.entities} entities, ${size.calls} calls of each kind, one at a time, over stdio\n`);
say('| Call | agctl p50 | p99 | server-memory p50 | p99 | faster by |');
say('|---|---|---|---|---|---|');
for (const name of ['store', 'turn', 'search', 'miss', 'graph']) {
  const row = [
    micro(ours[name]?.p50),
    micro(ours[name]?.p99),
    micro(peer[name]?.p50),
    micro(peer[name]?.p99),
  ];
  say(`| ${name} | ${row.join(' | ')} | ${ratio(name)} |`);
}
say(`
store: a new entity (ours: a document, embedded and on disk; theirs: create_entities). turn: a chat turn, on disk.
search: a word that one entity has (ours: search_knowledge; theirs: search_nodes). miss: a word that none has.
graph: what is connected to one entity (ours: query_graph; theirs: open_nodes).

Filling: agctl ${ours.filling.toFixed(0)} documents/s from the docs folder, each embedded and committed.
Start with all of it: agctl ${ours.start.toFixed(0)} ms, server-memory ${peer.start.toFixed(0)} ms to the first answer.
Memory then (RSS): agctl ${ours.rss} MiB, server-memory ${peer.rss} MiB. On disk: ${ours.disk} and ${peer.disk} MiB.
`);
