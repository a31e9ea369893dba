import { useMemo } from 'react';
import type { Overview } from '../../../core/overview.ts';
import { useLoaded } from '../../shared/use-loaded.ts';
import { visible } from '../../shared/visible.ts';
import { OVERVIEW } from './paths.ts';

/** What the configuration calls a route of the access log: `tools` for `default/tools`, `llm` for `internal/llm:request`. */
export type RouteTitles = (logged: string) => string;

/** A route that is no longer in the configuration keeps its name in the log. */
export function routeTitles(overview: Pick<Overview, 'gateways'> | undefined): RouteTitles {
  const routes = overview?.gateways.flatMap((gateway) => gateway.routes) ?? [];
  const titles = new Map([
    ...routes.map(({ key, title }) => [key, title] as const),
    ...routes.map(({ name, title }) => [name, title] as const),
  ]);
  return (logged) => visible(titles.get(logged) ?? logged);
}

/** How often the routes are read again, in ms: a reload may change them. */
const EVERY = 60_000;

export function useRouteTitles(): RouteTitles {
  const { data } = useLoaded<Overview>(OVERVIEW, EVERY);
  return useMemo(() => routeTitles(data), [data]);
}
