import type { Overview } from '../../core/overview.ts';
import { ask } from '../shared/api.ts';
import type { Action } from '../shared/palette.tsx';
import { navigate } from '../shared/router.tsx';
import { visible } from '../shared/visible.ts';
import { OVERVIEW } from './model/paths.ts';

/** What the command palette finds beside the pages: routes, targets and models of this gateway. */
export async function actionsOf(): Promise<readonly Action[]> {
  const { gateways } = await ask<Overview>(OVERVIEW);
  const routes = gateways.flatMap((gateway) => gateway.routes);
  const backends = routes.flatMap((route) => route.backends);
  const of = (kind: string, names: readonly string[], open: (name: string) => void): Action[] =>
    [...new Set(names)].map((name) => ({ title: visible(name), kind, run: () => open(name) }));
  return [
    ...routes.map(({ name, title }) => ({
      title: visible(title),
      kind: 'Requests of route',
      run: () => navigate('/requests', { text: name }),
    })),
    ...routes.map(({ title, line }) => ({
      title: visible(title),
      kind: `Route, line ${line} of the configuration`,
      run: () => navigate('/config', { line: String(line) }),
    })),
    ...of(
      'MCP target',
      backends.flatMap(({ targets = [] }) => targets.map(({ name }) => name)),
      (target) => navigate('/mcp', { target }),
    ),
    ...of(
      'Model',
      backends.flatMap(({ models = [] }) => models.map(({ name }) => name)),
      (model) => navigate('/llm', { model }),
    ),
    {
      title: 'Errors',
      kind: 'Requests',
      run: () => navigate('/requests', { status: 'errors' }),
    },
    {
      title: 'Refused requests',
      kind: 'Requests',
      run: () => navigate('/requests', { status: 'refused' }),
    },
    { title: 'Trace the next request', kind: 'Trace', run: () => navigate('/trace', { start: '1' }) },
  ];
}
