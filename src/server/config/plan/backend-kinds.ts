import type { Path } from '../../../core/diagnostic.ts';
import { membersOf } from '../../../core/foreign.ts';
import { anyBackendKinds } from '../../features.ts';
import type { BackendKind } from '../../kernel/backend.ts';
import { type BackendPlan, settingsPath } from './plan.ts';

/** A backend of exactly one kind. */
export interface KnownBackend {
  readonly kind: BackendKind;
  /** Valid by the schema of its kind. */
  readonly settings: unknown;
  /** Path of the settings. */
  readonly path: Path;
}

/** The kinds whose keys a backend has, of which a valid one has exactly one. */
export function kindsOf(plan: BackendPlan): KnownBackend[] {
  const members = membersOf(plan.config);
  return anyBackendKinds
    .filter(({ key }) => members[key] !== undefined)
    .map((kind) => ({ kind, settings: members[kind.key], path: settingsPath(plan, kind.key) }));
}

/** The backends of a list that are valid. */
export function knownBackends(plans: readonly BackendPlan[]): KnownBackend[] {
  return plans.flatMap((plan) => {
    const [known, ...others] = kindsOf(plan);
    return known === undefined || others.length > 0 ? [] : [known];
  });
}
