// The victim of kill-harness.ts: opens a store, says what it found, then writes and says what was acknowledged, until
// it is killed. A short line is one write to a pipe, so it leaves whole or not at all (POSIX: PIPE_BUF).
import { writeSync } from 'node:fs';
import { openSqliteStore } from '../../../src/adapter/memory/sqlite/open.ts';
import type { Store } from '../../../src/adapter/memory/store.ts';
import type { Log } from '../../../src/core/log.ts';
import { LogDirectives } from '../../../src/core/log-directives.ts';
import { foundBatches, importAndErase } from './kill-batches.ts';
import { brief, DOCUMENT, documentText, type Found, type Line, SESSION } from './kill-lines.ts';
import { textsOf } from './kill-texts.ts';
import { documentOf, turn, vector } from './records.ts';

const nothing = (): void => undefined;
/** The real one loads a library, which takes much of the start time. */
const SILENT: Log = {
  error: nothing,
  warn: nothing,
  info: nothing,
  debug: nothing,
  trace: nothing,
  always: nothing,
  internalError: nothing,
  internalErrors: 0,
  directives: new LogDirectives('error'),
};

function say(line: Line): void {
  let rest = Buffer.from(`${JSON.stringify(line)}\n`);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(1, rest));
    } catch (error) {
      // The parent reads slowly, and the pipe is full.
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
    chunks: chunks.map(({ content }) => brief(content)).sort(),
    vectors: vectors.length,
    edges: edges.length,
    batches: await foundBatches(store),
  };
}

/** Several writers at once, so that a kill meets batches as well as single writes. */
async function write(store: Store, start: number): Promise<void> {
  let next = start;
  const turns = async (): Promise<never> => {
    for (;;) {
      const content = `${next++}`;
      await store.appendTurn(turn(SESSION, content));
      say({ kind: 'turn', content });
    }
  };
  const documents = async (): Promise<never> => {
    for (let version = start; ; version++) {
      const texts = Array.from({ length: 1 + (version % 4) }, (_, part) => documentText(version, part));
      const document = documentOf(DOCUMENT, texts, { hash: `${version}` });
      await store.putDocument(document);
      say({ kind: 'document', version });
    }
  };
  await Promise.all([turns(), turns(), turns(), documents(), importAndErase(store, start, say)]);
}

/** Without a start number it only reads. */
async function writes(store: Store, start: string | undefined): Promise<void> {
  say({ kind: 'found', found: await found(store) });
  if (start !== undefined) await write(store, Number(start));
}

/** Without a start number it embeds what is left. */
async function texts(store: Store, model: string, start: string | undefined): Promise<void> {
  const texts = textsOf(store, model, SILENT);
  if (start === undefined) await texts.settle();
  say({ kind: 'texts', found: await texts.found() });
  if (start !== undefined) await texts.write(Number(start), say);
  await texts.close();
}

// With the name of a model it embeds, otherwise it writes.
const [path = '', model = '', start] = process.argv.slice(2);
const store = await openSqliteStore({ path, log: SILENT });
await (model === '' ? writes(store, start) : texts(store, model, start));
await store.close();
