// The victim of kill-harness.ts: opens stores, says what it found in each, then writes and says what was acknowledged,
// until it is killed. A line is one write to a pipe, so it leaves whole or not at all.
import { writeSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { openSqliteStore } from '../../../src/adapter/memory/sqlite/open.ts';
import type { Store } from '../../../src/adapter/memory/store.ts';
import { DOCUMENT, documentText, type Found, type Line, SESSION } from './kill-lines.ts';
import { documentOf, recordingLog, turn, vector } from './records.ts';

function say(line: Line): void {
  const text = `${JSON.stringify(line)}\n`;
  for (;;) {
    try {
      writeSync(1, text);
      return;
    } catch (error) {
      // The parent is behind, and the pipe full. A short line is never written in part (POSIX: PIPE_BUF).
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
  }
}

async function found(store: Store): Promise<Found> {
  const turns: string[] = [];
  for (let after: number | null = 0; after !== null; ) {
    const page = await store.turns(SESSION, { after, limit: 5000 });
    turns.push(...(page?.turns ?? []).map(({ content }) => content));
    after = page?.nextAfter ?? null;
  }
  const record = await store.document('docs_dir', DOCUMENT);
  const words = await store.lexical(['lemur'], { limit: 100 });
  const vectors = await store.nearest(vector(0), 'test/128', { limit: 100 });
  const chunks = await store.entities(words.map(({ id }) => id));
  const edges = record === undefined ? [] : await store.edges([record.id], 'in', 100);
  return {
    turns,
    hash: record?.hash,
    promised: record?.chunks ?? 0,
    chunks: chunks.map(({ content }) => content).sort(),
    vectors: vectors.length,
    edges: edges.length,
  };
}

/** Each store has several writers at once, so that a kill meets batches as well as single writes. */
async function write(store: Store, index: number, start: number): Promise<void> {
  let next = start;
  const turns = async (): Promise<never> => {
    for (;;) {
      const content = `${next++}`;
      await store.appendTurn(turn(SESSION, content));
      say({ kind: 'turn', store: index, content });
    }
  };
  const documents = async (): Promise<never> => {
    for (let version = start; ; version++) {
      const texts = Array.from({ length: 1 + (version % 4) }, (_, part) => documentText(version, part));
      const document = documentOf(DOCUMENT, texts, { hash: `${version}` });
      await store.putDocument(document);
      say({ kind: 'document', store: index, version });
    }
  };
  await Promise.all([turns(), turns(), turns(), documents()]);
}

const [start = '0', ...paths] = process.argv.slice(2);
await Promise.all(
  paths.map(async (path, index) => {
    const store = await openSqliteStore({ path, log: recordingLog() });
    const holds = await found(store);
    if (Number(start) === 0) flushCompileCache();
    say({ kind: 'found', store: index, found: holds });
    await write(store, index, Number(start));
  }),
);
