import { withoutSecrets } from '../../core/schema/secrets.ts';
import { kindsOf, knownBackends } from '../config/plan/backend-kinds.ts';
import type { BackendPlan } from '../config/plan/plan.ts';
import { backendKinds } from '../features.ts';
import type { CompileContext, NamedBackend } from '../kernel/compile-context.ts';
import type { Backend, Policy } from '../kernel/request/request-context.ts';
import type { WeightedBackend } from '../kernel/routing/route.ts';
import type { ContextOptions } from './compile-context.ts';
import { type CompileScope, contextAt } from './compile-policies.ts';
import type { ComponentCache } from './component-cache.ts';

/** Compiles a backend of a route, or takes the one that routes share. Empty if it gets no requests. */
export function compileBackend(
  plan: BackendPlan,
  policies: readonly Policy[],
  scope: CompileScope,
): WeightedBackend[] {
  const { name, weight } = plan;
  const backend = openOnce(plan, scope);
  if (weight === 0 || backend === NO_BACKEND) return [];
  return [{ weight, backend, policies, ownPolicies: ownPolicies(plan, scope), name: `/${name}` }];
}

/** What the kind of the backend does to all its calls, without secrets. */
function ownPolicies(plan: BackendPlan, scope: CompileScope): WeightedBackend['ownPolicies'] {
  return knownBackends([plan]).flatMap(({ kind, settings, path: below }) =>
    (kind.ownPolicies?.(settings) ?? []).flatMap(({ key, model, path, schema, config }) => {
      if (model !== undefined) return [];
      const place = contextAt([...below, ...path], scope).place();
      return [{ key, origin: { place, shown: withoutSecrets(schema, config) } }];
    }),
  );
}

function openOnce(plan: BackendPlan, { components, ...site }: CompileScope): Backend {
  const { id, config, path } = plan;
  // The host names are inputs because the DNS rebinding protection of the MCP backend allows them.
  const inputs = [config, [...site.hostnames].sort()];
  return components.get(id, inputs, { ...site, path }, (inside) => openBackend(plan, inside));
}

/** The top-level backends for policies that refer to one: compiled when first used. */
export function namedBackends(
  plans: ReadonlyMap<string, BackendPlan>,
  options: ContextOptions,
  components: ComponentCache,
): (name: string) => NamedBackend | undefined {
  return (reference) => {
    const name = reference.replace(/^\//, '');
    const plan = plans.get(name);
    const known = plan && kindsOf(plan)[0];
    if (plan === undefined || known === undefined) return undefined;
    const { kind, settings } = known;
    const scope = { options, components, hostnames: options.hostnamesOf(plan), expressions: [] };
    return {
      name,
      kind: kind.key,
      connectsTo: kind.connectsTo(settings),
      policies: Object.fromEntries(plan.policies.map(({ key, config }) => [key, config])),
      backend: openOnce(plan, scope),
    };
  };
}

/** Placeholder for an invalid backend, until the configuration is rejected. */
const NO_BACKEND: Backend = {
  handle: () => Promise.reject(new Error('not configured')),
  close: () => Promise.resolve(),
};

function openBackend(plan: BackendPlan, context: CompileContext): Backend {
  // The plan has reported the unknown name.
  const [known, ...others] = kindsOf(plan);
  if (known === undefined && plan.reference !== undefined && plan.path[0] !== 'backends') return NO_BACKEND;
  if (others.length > 0 || known === undefined) {
    context.report({
      code: 'AGW0105',
      message: known === undefined ? 'the backend is empty' : 'the backend has more than one kind',
      label: `expected exactly one of ${backendKinds.map(({ key }) => `\`${key}\``).join(', ')}`,
    });
    return NO_BACKEND;
  }
  const { kind, settings, path } = known;
  const inside = path.slice(plan.path.length);
  return kind.open(settings, inside.length === 0 ? context : context.at(...inside), plan.id);
}
