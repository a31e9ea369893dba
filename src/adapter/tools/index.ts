import type { Tool } from '../tool.ts';
import { addObservations } from './graph/add-observations.ts';
import { createEntities } from './graph/create-entities.ts';
import { createRelations } from './graph/create-relations.ts';
import { deleteEntities } from './graph/delete-entities.ts';
import { deleteObservations } from './graph/delete-observations.ts';
import { deleteRelations } from './graph/delete-relations.ts';
import { openNodes } from './graph/open-nodes.ts';
import { readGraph } from './graph/read-graph.ts';
import { searchNodes } from './graph/search-nodes.ts';
import { ingestDocument } from './ingest-document.ts';
import { queryGraph } from './query-graph.ts';
import { searchEpisodes } from './search-episodes.ts';
import { searchKnowledge } from './search-knowledge.ts';
import { storeEpisodic } from './store-episodic.ts';

/** Which tools an adapter offers: those of the specification, or also those for entities, earlier turns and deletion. */
export type ToolSet = 'default' | 'extended';

/** The tools, one file each, in the order of `tools/list`. */
export const tools: readonly Tool[] = [searchKnowledge, storeEpisodic, queryGraph, ingestDocument];

/** Further tools of the set `extended`. Those in `graph/` are called like those of @modelcontextprotocol/server-memory. */
export const extendedTools: readonly Tool[] = [
  createEntities,
  createRelations,
  addObservations,
  deleteEntities,
  deleteObservations,
  deleteRelations,
  readGraph,
  searchNodes,
  openNodes,
  searchEpisodes,
];
