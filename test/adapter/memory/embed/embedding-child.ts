// The victim of embedding-kill.test.ts. With a start number, it stores documents and says which were acknowledged, while
// their texts are embedded, until it is killed or has stored `count`. Then, or without one, it embeds what is left and says what the store holds.
import { writeSync } from 'node:fs';
import { ingestDocument } from '../../../../src/adapter/memory/documents.ts';
import { type Embedder, MODEL_SCORING } from '../../../../src/adapter/memory/embed/embedder.ts';
import { EmbeddingQueue } from '../../../../src/adapter/memory/embed/embedding-queue.ts';
import { createHashEmbedder } from '../../../../src/adapter/memory/embed/hash-embedder.ts';
import { openSqliteStore } from '../../../../src/adapter/memory/sqlite/open.ts';
import { recordingLog } from '../recording-log.ts';

const [path = '', model = '', start, count = '1000000'] = process.argv.slice(2);
const inner = createHashEmbedder();
/** Not immediate, so that texts are stored before they are embedded. */
const embedder: Embedder = { ...inner, id: model, isImmediate: false, scoring: MODEL_SCORING };
const log = recordingLog();
const store = await openSqliteStore({ path, log });
const queue = new EmbeddingQueue({ store, embedder, log });
const say = (line: object): void => void writeSync(1, `${JSON.stringify(line)}\n`);

queue.wake();
say({ pending: await store.unembeddedCount(model) });
if (start !== undefined)
  for (let n = Number(start); n < Number(start) + Number(count); n += 1) {
    const content = `# Lemur ${n}\n\n${`lemur number ${n} `.repeat(100)}\n\n# Rest\n\n${'lemur words '.repeat(90)}`;
    const failed = await ingestDocument({ store, embedder }, { title: `Page ${n}`, content }).then(
      () => undefined,
      (error: { code: string }) => error.code,
    );
    say(failed === undefined ? { stored: n } : { failed });
    queue.wake();
  }
// It resolves at a failure too, after which the queue tries again.
do await queue.settled(60_000);
while ((await store.unembeddedCount(model)) > 0);
const { entities, documents } = await store.stats();
const near = await store.nearest(await inner.embedQuery('lemur'), model, { limit: 5000 });
say({
  documents,
  chunks: entities.doc_chunk,
  words: (await store.lexical(['lemur'], { limit: 5000 })).length,
  vectors: new Set(near.map(({ id }) => id)).size,
  pending: await store.unembeddedCount(model),
  old: await store.keepVectorsOf(model),
});
await queue.close();
await store.close();
