import { z } from 'zod';
import { elementsOf, membersOf, numberIn, textIn } from '../../core/foreign.ts';
import { MEMORY_API_LIMITS, MEMORY_STORE_LIMITS } from '../../core/memory-limits.ts';
import { counted } from '../../core/render/counted.ts';
import { nonEmpty } from '../../core/schema/mapping.ts';
import { defineTool } from '../tool.ts';
import { oneLine } from './stored-text.ts';

export const ingestDocument = defineTool({
  name: 'ingest_document',
  title: 'Ingest a document',
  description:
    'Splits a document into passages, indexes them for search_knowledge and query_graph, and makes the backend read its ' +
    'documentation folder again. A document with the same source (or title, without one) is replaced.',
  input: z.strictObject({
    title: nonEmpty.max(MEMORY_API_LIMITS.nameLength).describe('Title of the document.'),
    content: nonEmpty
      .max(MEMORY_STORE_LIMITS.documentBytes)
      .describe('Its text, plain or Markdown, at most 2 MiB in UTF-8.'),
    source: nonEmpty
      .max(MEMORY_STORE_LIMITS.queryLength)
      .optional()
      .describe('URL or other origin, kept in its metadata.'),
  }),
  output: z.looseObject({
    document: z
      .looseObject({
        id: z.string(),
        title: z.string(),
        status: z.string().describe('created, updated or unchanged'),
        chunks: z.int(),
      })
      .nullish(),
    sync: z.looseObject({ state: z.string().describe('done, running or failed') }),
  }),
  readOnly: false,
  idempotent: true,
  run: (args, { backend, signal }) =>
    backend.call({
      method: 'POST',
      path: '/ingest/docs',
      body: args,
      write: { repeatable: true },
      timeout: MEMORY_API_LIMITS.ingestTimeout,
      signal,
    }),
  text({ document, sync }) {
    const stored =
      document == null
        ? []
        : [
            `Document "${oneLine(document.title)}" ${document.status}: ${counted(document.chunks, 'passage')}.`,
          ];
    const counts = COUNTS.flatMap((name) => {
      const count = numberIn(sync[name]) ?? 0;
      return count === 0 ? [] : [`${count} ${name}`];
    });
    const errors = elementsOf(sync['errors'])
      .slice(0, ERRORS)
      .map((error) => oneLine(`${textIn(membersOf(error)['path'])}: ${textIn(membersOf(error)['message'])}`));
    return [...stored, `Docs folder: ${[sync.state, ...counts].join(', ')}.`, ...errors].join('\n');
  },
});

/** Counts of a sync that are worth telling, and errors that are repeated in the text. */
const COUNTS = ['added', 'updated', 'unchanged', 'removed', 'failed'] as const;
const ERRORS = 5;
