import type { Tool } from '../tool.ts';
import { ingestDocument } from './ingest-document.ts';
import { queryGraph } from './query-graph.ts';
import { searchKnowledge } from './search-knowledge.ts';
import { storeEpisodic } from './store-episodic.ts';

/** The tools, one file each, in the order of `tools/list`. */
export const tools: readonly Tool[] = [searchKnowledge, storeEpisodic, queryGraph, ingestDocument];
