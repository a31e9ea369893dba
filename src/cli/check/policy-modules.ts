import { type Path, pathText } from '../../core/diagnostic.ts';
import { SILENT_LOG } from '../../core/log.ts';
import { routesOf } from '../../server/config/plan/plan.ts';
import { modules } from '../../server/policies/modules/index.ts';
import { buildRuntime } from '../../server/runtime/runtime.ts';
import { type CheckContext, type CheckGroup, type CheckResult, check, fail, ok, skip } from './check.ts';

/** Loads the policies in TypeScript as the gateway does. */
export const policyModules: CheckGroup = {
  name: 'policies',
  title: () => 'policies in TypeScript',
  run: (context) => (hasModules(context) ? [check('policies in TypeScript', load(context))] : []),
};

function hasModules({ gateways }: CheckContext): boolean {
  return gateways
    .flatMap((gateway) => [...gateway.listeners, ...routesOf(gateway)])
    .some(({ policies }) => policies.some(({ key }) => key === modules.key));
}

async function load({
  config,
  loaded,
  env,
  folder,
  options,
}: CheckContext): Promise<CheckResult | CheckResult[]> {
  if (!options.start) return skip('not loaded: their code runs then (--start)');
  if (config === undefined) return skip('not checked: the configuration is not valid');
  const { runtime, diagnostics } = await buildRuntime({
    config,
    source: loaded.source,
    log: SILENT_LOG,
    env,
    folder,
  });
  try {
    const problems = diagnostics.filter(
      ({ path, severity }) => severity === 'error' && path.includes(modules.key),
    );
    if (problems.length === 0) return ok('loaded');
    return problems.map(({ path, message, help }) =>
      fail(`${pathText(placeOf(path))}: ${message}`, help ?? 'see docs/policies.md'),
    );
  } finally {
    await runtime.close();
  }
}

/** The place of a policy: its messages name its options. */
function placeOf(path: Path): Path {
  const options = path.indexOf('options');
  return options === -1 ? path : path.slice(0, options);
}
