import type { Endpoint } from '../endpoint.ts';
import { budgets } from './budgets.ts';
import { cel } from './cel.ts';
import { config } from './config.ts';
import { configDump } from './config-dump.ts';
import { configFile } from './config-file.ts';
import { configSchemaHint } from './config-schema.ts';
import { configValidate } from './config-validate.ts';
import { debugTrace } from './debug-trace.ts';
import { keys, revokeKey } from './keys.ts';
import { logging } from './logging.ts';
import { memory } from './memory.ts';
import { metrics } from './metrics.ts';
import { openRequests } from './open-requests.ts';
import { overview } from './overview.ts';
import { playground } from './playground.ts';
import { pprofHeap } from './pprof-heap.ts';
import { pprofProfile } from './pprof-profile.ts';
import { quitquitquit } from './quitquitquit.ts';
import { record } from './record.ts';
import { records } from './records.ts';
import { requests } from './requests.ts';
import { root } from './root.ts';
import { statusPage, statusStyle } from './status.ts';
import { tasks } from './tasks.ts';
import { usage } from './usage.ts';

/** Every endpoint of the admin server. An endpoint is one file and one line here. */
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
  overview,
  metrics,
  requests,
  openRequests,
  records,
  record,
  usage,
  config,
  configFile,
  configValidate,
  configSchemaHint,
  cel,
  playground,
  keys,
  revokeKey,
  budgets,
];
