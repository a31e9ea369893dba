import type { Path } from '../../../core/diagnostic.ts';
import type { PolicyPlan } from './plan.ts';

/** The policies of one section, in the order of the file. `owner` is a name that is unique and stable. */
export function planPolicies(policies: object | undefined, path: Path, owner: string): PolicyPlan[] {
  return Object.entries(policies ?? {}).flatMap(([key, config]: [string, unknown]) =>
    config === undefined ? [] : [{ id: `${owner}/${key}`, key, config, path: [...path, key] }],
  );
}
