import { z } from 'zod';
import { defineTool } from '../../tool.ts';
import { deleted, deleteFrom, many, name } from './shapes.ts';

export const deleteEntities = defineTool({
  name: 'delete_entities',
  title: 'Delete entities',
  description: 'Deletes entities with their observations and relations. Unknown names are ignored.',
  input: z.object({ entityNames: many(name).describe('The names of the entities to delete.') }),
  output: deleted,
  readOnly: false,
  idempotent: true,
  destructive: true,
  run: ({ entityNames }, context) => deleteFrom({ deleteEntities: entityNames }, 'Entities', context),
  text: ({ message }) => message,
});
