import { z } from 'zod';
import { defineTool } from '../../tool.ts';
import { cursor, graph, many, name, readGraph } from './shapes.ts';

export const openNodes = defineTool({
  name: 'open_nodes',
  title: 'Open nodes',
  description: 'Returns entities by their names, with their relations. Unknown names are ignored.',
  input: z.object({ names: many(name).describe('The names of the entities.'), cursor }),
  output: graph,
  readOnly: true,
  idempotent: true,
  run: (args, context) => readGraph(args, context),
});
