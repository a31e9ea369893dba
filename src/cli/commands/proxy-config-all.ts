import { EXIT_CODES } from '../../core/exit-codes.ts';
import { membersOf } from '../../core/foreign.ts';
import { displayWidth, escapeControls } from '../../core/render/width.ts';
import type { Run } from '../context.ts';
import { type Dump, type DumpOptions, loadDump } from '../proxy/dump.ts';
import { objects, type RouteRow, routesOf, text } from '../proxy/dump-parts.ts';
import { escapeUnsafe, indentJson } from '../proxy/json-text.ts';
import { print, table } from '../proxy/print.ts';

interface Options extends DumpOptions {
  readonly output?: 'short' | 'json' | 'yaml';
}

/** Prints the whole dump. Default without `-o`: an overview on a terminal, otherwise JSON (upstream's default). */
export const run: Run<Options> = async (options, context) => {
  const { stdout } = context;
  const dump = await loadDump(options, context);
  const output = options.output ?? (stdout.isTTY === true ? 'short' : 'json');
  if (output === 'json') await print(stdout, indented(dump));
  else if (output === 'yaml') {
    const { yamlOf } = await import('../proxy/yaml-text.ts');
    await print(stdout, yamlOf(dump.value));
  } else await print(stdout, [overviewOf(dump)]);
  return EXIT_CODES.ok.code;
};

/** Gateways send the dump already indented; detecting that takes a third of the time of indenting it. */
function indented({ text, value }: Dump): Iterable<string> {
  const isIndented = text.startsWith('{\n  "') && JSON.stringify(value, null, 2) === text.trimEnd();
  return isIndented ? [`${escapeUnsafe(text.trimEnd())}\n`] : indentJson(text);
}

/** A one-screen overview: listeners with their routes, and the number of other objects. */
function overviewOf({ source, value }: Dump): string {
  const routes = routesOf(value);
  const { version } = membersOf(value['version']);
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
