import { membersOf } from '../../core/foreign.ts';
import { type BackendPlan, settingsPath } from '../config/plan/plan.ts';
import { backendKinds, sectionBackendKinds } from '../features.ts';
import type { BackendKind } from '../kernel/backend.ts';
import type { CompileContext, NamedBackend } from '../kernel/compile-context.ts';
import type { Backend, Policy, WeightedBackend } from '../kernel/request-context.ts';
import type { ContextOptions } from './compile-context.ts';
import type { CompileScope } from './compile-policies.ts';
import type { ComponentCache } from './component-cache.ts';

/** Compiles a backend of a route, or takes the one that routes share. Empty if it gets no requests. */
export function compileBackend(
  plan: BackendPlan,
  policies: readonly Policy[],
  scope: CompileScope,
): WeightedBackend[] {
  const { name, weight } = plan;
  const backend = openOnce(plan, scope);
  return weight === 0 || backend === NO_BACKEND ? [] : [{ weight, backend, policies, name: `/${name}` }];
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
    const kind = plan && kindsOf(plan)[0];
    if (plan === undefined || kind === undefined) return undefined;
    const scope = { options, components, hostnames: options.hostnamesOf(plan), expressions: [] };
    return {
      name,
      kind: kind.key,
      config: settingsOf(plan, kind),
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
  const [kind, ...others] = kindsOf(plan);
  if (kind === undefined && plan.reference !== undefined && plan.path[0] !== 'backends') return NO_BACKEND;
  if (others.length > 0 || kind === undefined) {
    context.report({
      code: 'AGW0105',
      message: kind === undefined ? 'the backend is empty' : 'the backend has more than one kind',
      label: `expected exactly one of ${backendKinds.map(({ key }) => `\`${key}\``).join(', ')}`,
    });
    return NO_BACKEND;
  }
  const inside = settingsPath(plan, kind.key).slice(plan.path.length);
  return kind.open(settingsOf(plan, kind), inside.length === 0 ? context : context.at(...inside), plan.id);
}

function kindsOf({ config }: BackendPlan): BackendKind[] {
  const kinds: Readonly<Record<string, unknown>> = config;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each kind gets what its own schema has checked
  const all: readonly BackendKind[] = [
    ...backendKinds,
    ...sectionBackendKinds,
  ] as unknown as readonly BackendKind[];
  return all.filter(({ key }) => kinds[key] !== undefined);
}

const settingsOf = ({ config }: BackendPlan, { key }: BackendKind): unknown => membersOf(config)[key];
