import { displayWidth, escapeControls } from '../../core/render/width.ts';
import type { Dump } from './dump.ts';
import { isObject, objects, type RouteRow, routesOf, text } from './dump-parts.ts';
import { table } from './print.ts';

/** A one-screen overview: listeners with their routes, and the number of other objects. */
export function overviewOf({ source, value }: Dump): string {
  const routes = routesOf(value);
  const { version } = isObject(value['version']) ? value['version'] : { version: '' };
  const head = [source, text(version) === '' ? '' : `version ${escapeControls(text(version))}`];
  const counts = [
    plural(objects(value['binds']).length, 'port'),
    plural(routes.length, 'route'),
    plural(objects(value['backends']).length, 'backend'),
    plural(
      objects(value['policies']).length + routes.reduce((sum, { policies }) => sum + policies.length, 0),
      'policy',
      'policies',
    ),
  ];
  return [
    `${head.filter((part) => part !== '').join('   ')}\n`,
    ...listeners(routes),
    `\n${counts.join(', ')}        -o yaml or -o json for everything\n`,
  ].join('');
}

function listeners(routes: readonly RouteRow[]): string[] {
  const groups = Map.groupBy(routes, ({ address, listener }) => `${listener} ${address}`);
  return [...groups].map(([name, rows]) => {
    const lines = rows.map(({ route, matches, backends, policies }) =>
      [`  ${route}`, matches.join(' or '), `→ ${backends.join(', ')}`, policies.join(' · ')].map(
        escapeControls,
      ),
    );
    return `\n${escapeControls(name)}\n${table(lines, displayWidth)}`;
  });
}

function plural(amount: number, one: string, many = `${one}s`): string {
  return `${amount} ${amount === 1 ? one : many}`;
}
