import { membersOf } from '../../../core/foreign.ts';
import { anyBackendKinds } from '../../features.ts';
import { type BackendPlan, type PolicyPlan, policyOf } from './plan.ts';

/** A backend whose servers have their own settings of TLS gets those of its policies, or of its route. */
export function withTls(backend: BackendPlan, policies: readonly PolicyPlan[]): BackendPlan {
  const tls = policyOf(policies, 'backendTLS');
  if (tls === undefined) return backend;
  const settings = membersOf(backend.config);
  const changed = anyBackendKinds.flatMap(({ key, withTls: change }) =>
    change === undefined || settings[key] === undefined
      ? []
      : [[key, change(settings[key], tls.config)] as const],
  );
  return changed.length === 0
    ? backend
    : { ...backend, config: { ...backend.config, ...Object.fromEntries(changed) } };
}
