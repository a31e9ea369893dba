import { z } from 'zod';
import { defineTool } from '../../tool.ts';
import { deleted, deleteFrom, many, relation } from './shapes.ts';

export const deleteRelations = defineTool({
  name: 'delete_relations',
  title: 'Delete relations',
  description: 'Deletes relations between entities. Unknown relations are ignored.',
  input: z.object({ relations: many(relation).describe('The relations to delete.') }),
  output: deleted,
  readOnly: false,
  idempotent: true,
  destructive: true,
  run: ({ relations }, context) => deleteFrom({ deleteRelations: relations }, 'Relations', context),
  text: ({ message }) => message,
});
