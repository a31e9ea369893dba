import { z } from 'zod';
import { defineTool } from '../../tool.ts';
import { cursor, graph, readGraph as read } from './shapes.ts';

export const readGraph = defineTool({
  name: 'read_graph',
  title: 'Read the graph',
  description:
    'Returns entities, by name, with their relations: all of them if they are few, otherwise a page and a note. To look for ' +
    'something, use search_nodes.',
  input: z.object({ cursor }),
  output: graph,
  readOnly: true,
  idempotent: true,
  run: (args, context) => read(args, context),
});
