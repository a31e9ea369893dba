import type { Path } from '../../core/diagnostic.ts';
import { withoutSecrets } from '../../core/schema/secrets.ts';
import { withConditional } from '../config/conditional-schema.ts';
import type { PolicyPlan } from '../config/plan/plan.ts';
import { anyPolicyKinds } from '../features.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { Expression } from '../kernel/expression.ts';
import type { PolicyKind } from '../kernel/policy.ts';
import type { Policy } from '../kernel/request/request-context.ts';
import type { BodyUse } from '../kernel/routing/route.ts';
import { type ContextOptions, createContext } from './compile-context.ts';
import type { ComponentCache } from './component-cache.ts';
import { compileKind } from './conditional-policy.ts';

/** Where policies and backends of one route or listener are compiled, and what is collected meanwhile. */
export interface CompileScope {
  readonly options: ContextOptions;
  readonly components: ComponentCache;
  readonly hostnames: ReadonlySet<string>;
  readonly expressions: Expression[];
}

export function contextAt(path: Path, { options, hostnames, expressions }: CompileScope): CompileContext {
  return createContext(options, path, hostnames, expressions);
}

/** Compiles policies, or takes them from the active configuration, and returns them in the order of `policyKinds`. */
export function compilePolicies(plans: readonly PolicyPlan[], scope: CompileScope): Policy[] {
  return anyPolicyKinds.flatMap((kind) => {
    const own = plans.filter(({ key }) => key === kind.key).map((plan) => compilePolicy(kind, plan, scope));
    const last = own.at(-1);
    if (last === undefined || own.length === 1) return own;
    // The most specific level comes last.
    return kind.combine === undefined ? [last] : [{ ...last, ...kind.combine(own) }];
  });
}

function compilePolicy(
  kind: PolicyKind,
  { id, key, config, path }: PolicyPlan,
  { components, ...shared }: CompileScope,
): Policy {
  const place = contextAt(path, { components, ...shared }).place();
  const origin = { place, shown: withoutSecrets(withConditional(kind), config) };
  const compiled = components.get(id, config, { ...shared, path }, (inside) =>
    compileKind(kind, config, inside),
  );
  return { key, ...(kind.trace && { trace: kind.trace }), origin, ...compiled };
}

/** What these expressions, and those of the log, read of request bodies. */
export function bodyUse(
  expressions: readonly Expression[],
  logReadsBody: boolean,
  { maxBufferSize }: ContextOptions['settings'],
): BodyUse {
  const decidesByBody = expressions.some(
    (expression) => expression.reads('request.body') || expression.reads('request.bodyPrefix'),
  );
  return { readsBody: logReadsBody || decidesByBody, decidesByBody, maxBufferSize };
}
