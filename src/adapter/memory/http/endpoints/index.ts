import type { Endpoint } from '../endpoint.ts';
import { chat } from './chat.ts';
import { deletions, forget } from './deletions.ts';
import { entities, entity } from './entities.ts';
import { graph, graphChanges, graphRead } from './graph.ts';
import { ingestDocs } from './ingest-docs.ts';
import { ingestStatus } from './ingest-status.ts';
import { namespaceBackup, namespaceDelete, namespaces } from './namespaces.ts';
import { search } from './search.ts';
import { stats } from './stats.ts';
import { exported, imported } from './transfer.ts';
import { sessions, sessionTurns, turns } from './turns.ts';

/** Every endpoint below `/api/memory`, each in its own file. */
export const endpoints: readonly Endpoint[] = [
  search,
  chat,
  graph,
  graphChanges,
  graphRead,
  ingestDocs,
  ingestStatus,
  stats,
  entities,
  entity,
  sessions,
  sessionTurns,
  turns,
  forget,
  ...deletions,
  namespaces,
  namespaceDelete,
  namespaceBackup,
  exported,
  imported,
];
