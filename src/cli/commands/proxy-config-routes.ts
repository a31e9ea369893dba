import { EXIT_CODES } from '../../core/exit-codes.ts';
import { displayWidth, escapeControls } from '../../core/render/width.ts';
import type { Run } from '../context.ts';
import { type DumpOptions, loadDump } from '../proxy/dump.ts';
import { routesOf } from '../proxy/dump-parts.ts';
import { indentJson } from '../proxy/json-text.ts';
import { print, table } from '../proxy/print.ts';

interface Options extends DumpOptions {
  readonly output?: 'short' | 'json' | 'yaml';
}

const HEAD = ['ADDRESS', 'LISTENER', 'ROUTE', 'MATCH', 'BACKEND', 'POLICIES'];

export const run: Run<Options> = async (options, context) => {
  const routes = routesOf((await loadDump(options, context)).value);
  const rows = routes.map(({ address, listener, route, matches, backends, policies }) =>
    [address, listener, route, matches.join(' or '), backends.join(', '), policies.join(', ')].map(
      escapeControls,
    ),
  );
  if (options.output === 'json') await print(context.stdout, indentJson(JSON.stringify(routes)));
  else if (options.output === 'yaml') {
    const { yamlOf } = await import('../proxy/yaml-text.ts');
    await print(context.stdout, yamlOf(routes));
  } else await print(context.stdout, [table([HEAD, ...rows], displayWidth)]);
  return EXIT_CODES.ok.code;
};
