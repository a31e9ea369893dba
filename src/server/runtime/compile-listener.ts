import type { ListenerPlan } from '../config/plan/plan.ts';
import type { Expression } from '../kernel/expression.ts';
import type { Listener, Route } from '../kernel/routing/route.ts';
import { answeringRoute, createRouter } from '../kernel/routing/router.ts';
import type { ContextOptions } from './compile-context.ts';
import { bodyUse, type CompileScope, compilePolicies } from './compile-policies.ts';
import { compileRoute } from './compile-route.ts';
import type { ComponentCache } from './component-cache.ts';
import type { UnreachedRoutes } from './unreached-routes.ts';

/** Compiles a listener with its policies and routes. `unreached` gets the routes. */
export function compileListener(
  plan: ListenerPlan,
  options: ContextOptions,
  components: ComponentCache,
  logReadsBody: boolean,
  unreached: UnreachedRoutes,
): Listener {
  const { name, hostname } = plan;
  const expressions: Expression[] = [];
  const hostnames = new Set(hostname === undefined || hostname.startsWith('*') ? [] : [hostname]);
  const scope: CompileScope = { options, components, hostnames, expressions };
  const policies = compilePolicies(plan.policies, scope);
  const routes = plan.routes.map((route) =>
    compileRoute(route, plan.policies, options, components, logReadsBody),
  );
  unreached.add(plan.routes, routes);
  const router = createRouter(routes);
  const delegates = routes.some((route) => route.delegates !== undefined);
  return {
    name,
    policies,
    routes: delegates ? answeringRoutes(routes) : routes,
    router: delegates ? (ctx) => answeringRoute(router(ctx), ctx) : router,
    ...bodyUse(expressions, policies.length > 0 && logReadsBody, options.settings),
  };
}

/** All routes that answer requests: those that others delegate to, too. */
function answeringRoutes(routes: readonly Route[]): Route[] {
  return routes.flatMap((route) =>
    route.delegates === undefined
      ? [route]
      : route.delegates.flatMap((each) =>
          each.routes[0]?.fullKey === route.fullKey ? each.routes : answeringRoutes(each.routes),
        ),
  );
}
