import { z } from 'zod';
import { defineTool } from '../../tool.ts';
import { changeGraph, entity, graph, many, member } from './shapes.ts';

export const createEntities = defineTool({
  name: 'create_entities',
  title: 'Create entities',
  description:
    'Creates entities, such as people, projects or events, with observations about them. Names that exist already are left ' +
    'as they are. Returns the entities that were created.',
  input: z.object({ entities: many(entity) }),
  output: graph.pick({ entities: true }),
  readOnly: false,
  idempotent: false,
  run: async ({ entities }, context) =>
    member(await changeGraph({ createEntities: entities }, context), 'entities'),
  text: ({ entities }) => JSON.stringify(entities),
});
