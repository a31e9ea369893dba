import { type BackendState, mergeStates } from '../kernel/inspection.ts';
import { mergeOutages } from './outages.ts';
import { type Activity, answersOf } from './process-view.ts';
import type { Serving } from './serving.ts';

/** What all processes of a gateway are doing. */
export async function activityOf({ processes }: Serving): Promise<Activity> {
  const each = await answersOf(processes, (process) => process.activity());
  const backends: Record<string, BackendState> = {};
  for (const activity of each)
    for (const [path, state] of Object.entries(activity.backends))
      backends[path] = backends[path] === undefined ? state : mergeStates(backends[path], state);
  return {
    openRequests: each.reduce((sum, { openRequests }) => sum + openRequests, 0),
    backends,
    outages: mergeOutages(each.flatMap(({ outages }) => outages)),
    certificates: each.flatMap(({ certificates }) => certificates),
  };
}
