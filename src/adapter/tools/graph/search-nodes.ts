import { z } from 'zod';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { defineTool } from '../../tool.ts';
import { cursor, graph, readGraph } from './shapes.ts';

export const searchNodes = defineTool({
  name: 'search_nodes',
  title: 'Search nodes',
  description:
    'Returns the entities whose name, type or observations contain a text, in any case, with their relations.',
  input: z.object({
    query: z.string().max(MEMORY_STORE_LIMITS.queryLength).describe('The text to look for.'),
    cursor,
  }),
  output: graph,
  readOnly: true,
  idempotent: true,
  run: (args, context) => readGraph(args, context),
});
