import { z } from 'zod';
import { defineTool } from '../../tool.ts';
import { deleted, deleteFrom, many, name } from './shapes.ts';

export const deleteObservations = defineTool({
  name: 'delete_observations',
  title: 'Delete observations',
  description: 'Deletes observations from entities. Unknown entities and observations are ignored.',
  input: z.object({
    deletions: many(
      z.object({
        entityName: name.describe('The name of the entity.'),
        observations: many(z.string()).describe('The observations to delete, word for word.'),
      }),
    ),
  }),
  output: deleted,
  readOnly: false,
  idempotent: true,
  destructive: true,
  run: ({ deletions }, context) => deleteFrom({ deleteObservations: deletions }, 'Observations', context),
  text: ({ message }) => message,
});
