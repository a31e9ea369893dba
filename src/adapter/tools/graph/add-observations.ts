import { z } from 'zod';
import { defineTool } from '../../tool.ts';
import { changeGraph, many, member, name, observations } from './shapes.ts';

export const addObservations = defineTool({
  name: 'add_observations',
  title: 'Add observations',
  description:
    'Adds observations to entities that exist. Returns what was added to each; fails for an unknown entity.',
  input: z.object({
    observations: many(
      z.object({
        entityName: name.describe('The name of the entity.'),
        contents: observations.describe('The observations to add, one fact each.'),
      }),
    ),
  }),
  output: z.object({
    results: z.array(z.object({ entityName: z.string(), addedObservations: z.array(z.string()) })),
  }),
  readOnly: false,
  idempotent: false,
  run: async (args, context) =>
    member(await changeGraph({ addObservations: args.observations }, context), 'observations', 'results'),
  text: ({ results }) => JSON.stringify(results),
});
