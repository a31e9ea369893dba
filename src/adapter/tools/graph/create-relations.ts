import { z } from 'zod';
import { defineTool } from '../../tool.ts';
import { changeGraph, graph, many, member, relation } from './shapes.ts';

export const createRelations = defineTool({
  name: 'create_relations',
  title: 'Create relations',
  description:
    'Creates relations between entities, in active voice. Relations that exist already are left as they are. Returns the ' +
    'relations that were created.',
  input: z.object({ relations: many(relation) }),
  output: graph.pick({ relations: true }),
  readOnly: false,
  idempotent: false,
  run: async ({ relations }, context) =>
    member(await changeGraph({ createRelations: relations }, context), 'relations'),
  text: ({ relations }) => JSON.stringify(relations),
});
