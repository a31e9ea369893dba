import type { Endpoint } from '../endpoint.ts';
import { audit } from './audit.ts';
import { cel } from './cel.ts';
import { config, configFile, configSchemaHint, configValidate } from './config.ts';
import { configDump } from './config-dump.ts';
import { debugTrace } from './debug-trace.ts';
import { budgets, keys, revokeKey } from './keys.ts';
import { logging } from './logging.ts';
import { me } from './me.ts';
import { memory } from './memory.ts';
import { metrics, pageMetrics } from './metrics.ts';
import { overview } from './overview.ts';
import { playground } from './playground.ts';
import { pprofHeap, pprofProfile } from './pprof.ts';
import { quitquitquit } from './quitquitquit.ts';
import { record, records, usage } from './records.ts';
import { openRequests, requests } from './requests.ts';
import { root } from './root.ts';
import { services } from './services.ts';
import { statusPage, statusStyle } from './status.ts';
import { tasks } from './tasks.ts';
import { mcpCallers } from './tool-callers.ts';
import { revokeUser, users } from './users.ts';

/** Every endpoint of the admin server. */
export const endpoints: readonly Endpoint[] = [
  // Upstream's endpoints, which its own `agctl` and users' scripts call.
  configDump,
  debugTrace,
  logging,
  memory,
  pprofProfile,
  pprofHeap,
  tasks,
  quitquitquit,
  // For people, and for the pages that they use.
  root,
  statusPage,
  statusStyle,
  me,
  overview,
  metrics,
  pageMetrics,
  requests,
  openRequests,
  services,
  records,
  record,
  usage,
  config,
  configFile,
  configValidate,
  configSchemaHint,
  cel,
  playground,
  mcpCallers,
  keys,
  revokeKey,
  budgets,
  users,
  revokeUser,
  audit,
];
