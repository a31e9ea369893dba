import type { Tool } from '../tool.ts';
import { graphTools } from './graph.ts';
import { ingestDocument } from './ingest-document.ts';
import { queryGraph } from './query-graph.ts';
import { searchEpisodes } from './search-episodes.ts';
import { searchKnowledge } from './search-knowledge.ts';
import { storeEpisodic } from './store-episodic.ts';

/** Which tools an adapter offers: those of the specification, or also those for entities, earlier turns and deletion. */
export type ToolSet = 'default' | 'extended';

/** The tools, in the order of `tools/list`. */
export const tools: readonly Tool[] = [searchKnowledge, storeEpisodic, queryGraph, ingestDocument];

/** Further tools of the set `extended`. */
export const extendedTools: readonly Tool[] = [...graphTools, searchEpisodes];
