import type { Endpoint } from '../endpoint.ts';
import { chat } from './chat.ts';
import { deletions } from './deletions.ts';
import { entities } from './entities.ts';
import { entity } from './entity.ts';
import { exported } from './export.ts';
import { forget } from './forget.ts';
import { graph } from './graph.ts';
import { graphChanges } from './graph-changes.ts';
import { graphRead } from './graph-read.ts';
import { imported } from './import.ts';
import { ingestDocs } from './ingest-docs.ts';
import { ingestStatus } from './ingest-status.ts';
import { namespaceBackup } from './namespace-backup.ts';
import { namespaceDelete } from './namespace-delete.ts';
import { namespaces } from './namespaces.ts';
import { search } from './search.ts';
import { sessionTurns } from './session-turns.ts';
import { sessions } from './sessions.ts';
import { stats } from './stats.ts';
import { turns } from './turns.ts';

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
