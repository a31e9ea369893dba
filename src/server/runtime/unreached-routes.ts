import type { Path } from '../../core/diagnostic.ts';
import type { RoutePlan } from '../config/plan/plan.ts';
import { shadowedProblem, shadowedRoutes } from '../config/route-shadowing.ts';
import type { Problem } from '../kernel/compile-context.ts';
import type { Route } from '../kernel/routing/route.ts';

/** The routes that no request reaches. A route can belong to several listeners, and be reached at one of them only. */
export class UnreachedRoutes {
  readonly #reached = new Set<string>();
  readonly #unreached = new Map<string, { readonly place: Path; readonly problem: Problem }>();

  /** Adds the routes of one listener: `routes` are compiled from `plans`. */
  add(plans: readonly RoutePlan[], routes: readonly Route[]): void {
    const shadowed = new Map(shadowedRoutes(routes).map(({ route, by }) => [route, by]));
    for (const [index, { path, config, isShortForm }] of plans.entries()) {
      const route = routes[index];
      if (route === undefined) continue;
      const by = shadowed.get(route);
      const id = JSON.stringify(path);
      if (by === undefined) this.#reached.add(id);
      else {
        const isConfigured = config.matches !== undefined && !isShortForm;
        const place = isConfigured ? [...path, 'matches', 0, 'path'] : path;
        this.#unreached.set(id, { place, problem: shadowedProblem(route, by) });
      }
    }
  }

  /** Warns of those that no listener reaches. */
  report(report: (path: Path, problem: Problem) => void): void {
    for (const [id, { place, problem }] of this.#unreached)
      if (!this.#reached.has(id)) report(place, problem);
  }
}
