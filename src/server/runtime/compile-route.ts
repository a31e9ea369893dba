import { withoutSecrets } from '../../core/schema/redacted.ts';
import { backendKinds } from '../backends.ts';
import type { RouteNames } from '../config/dump/names.ts';
import type { RoutePlan } from '../config/plan.ts';
import type { Expression } from '../expressions/cel/expression.ts';
import { canonicalName } from '../kernel/authority.ts';
import type { Backend, BackendKind } from '../kernel/backend.ts';
import { compileMatches } from '../kernel/match.ts';
import type { Route } from '../kernel/pipeline.ts';
import type { Policy, PolicyKind } from '../kernel/policy.ts';
import type { RequestMatcher } from '../kernel/router.ts';
import { policyKinds } from '../policies/index.ts';
import { type CompileContext, type ContextOptions, createContext } from './compile-context.ts';
import type { Parts } from './component-cache.ts';
import { reportIneffective, reportUnsetVariables } from './ineffective-policies.ts';

/** Compiles one route; its policies and backends become `parts`, or are taken over from those that serve. */
export function compileRoute(
  { key, name, config, path, backendPath }: RoutePlan,
  { key: fullKey, backend: backendName }: Pick<RouteNames, 'key' | 'backend'>,
  options: ContextOptions,
  parts: Parts,
  logReadsBody: boolean,
): Route {
  const hostnames = config.hostnames.map(canonicalName);
  const literal = new Set(hostnames.filter((hostname) => !hostname.startsWith('*')));
  const expressions: Expression[] = [];
  const context = createContext(options, path, literal, expressions);
  const policies = compilePolicies(config.policies, context, {
    options,
    fullKey,
    parts,
    hostnames: literal,
    expressions,
  });
  for (const policy of policies)
    for (const hostname of policy.hostnames ?? []) literal.add(canonicalName(hostname));
  const ownPaths = policies
    .flatMap(({ paths }) => paths ?? [])
    .map((value): RequestMatcher => ({ path: { kind: 'exact', value }, headers: [], query: [] }));
  // Policies only: a webhook header that reads a missing token is left out, which may be wanted.
  const readsToken = expressions.some(({ roots }) => roots.has('jwt'));
  if (readsToken && config.policies?.mcpAuthentication === undefined) {
    context.report({
      code: 'AGW0301',
      severity: 'warning',
      message: `route \`${name}\` reads \`jwt\`, but nothing on it validates a token`,
      help: 'add the policy `mcpAuthentication`; until then `jwt` is null',
    });
  }
  reportUnsetVariables(name, config, expressions, context);
  reportIneffective(name, config, context);
  const backends = config.backends.flatMap(({ weight, ...kinds }, index) => {
    const at = backendPath ?? [...path, 'backends', index];
    const site = { options, path: at, hostnames: literal, expressions };
    // The host names are those that a protection against DNS rebinding allows.
    const backend = parts.get(`${fullKey}/backend${index}`, [kinds, [...literal].sort()], site, (inside) =>
      openBackend(kinds, inside, `${fullKey}/backend${index}`, backendPath === undefined),
    );
    return weight === 0 || backend === NO_BACKEND
      ? []
      : [{ weight, backend, name: `/${backendName(index)}` }];
  });
  if (config.backends.length === 0 && config.policies?.directResponse === undefined) {
    context.report({
      code: 'AGW0103',
      message: `route \`${name}\` has no backend`,
      help: 'add `backends:` with one entry, or the policy `directResponse`',
    });
  }
  const decidesByBody = expressions.some(
    (expression) => expression.reads('request.body') || expression.reads('request.bodyPrefix'),
  );
  return {
    key,
    fullKey,
    name,
    place: context.place(),
    hostnames,
    matches: [...compileMatches(config.matches, context), ...ownPaths],
    policies,
    wrappers: policies.filter(({ around }) => around !== undefined),
    readsBody: logReadsBody || decidesByBody,
    decidesByBody,
    isLlm: config.backends.some(({ llm }) => llm !== undefined),
    maxBufferSize: options.settings.maxBufferSize,
    backends,
  };
}

interface RouteParts {
  readonly options: ContextOptions;
  readonly fullKey: string;
  readonly parts: Parts;
  readonly hostnames: ReadonlySet<string>;
  readonly expressions: Expression[];
}

function compilePolicies(
  config: object | undefined,
  context: CompileContext,
  { parts, fullKey, ...shared }: RouteParts,
): Policy[] {
  return (policyKinds as unknown as readonly PolicyKind[]).flatMap((kind): Policy[] => {
    const settings = (config as Readonly<Record<string, unknown>> | undefined)?.[kind.key];
    if (settings === undefined) return [];
    const at = context.at('policies', kind.key);
    const origin = { place: at.place(), shown: withoutSecrets(kind.schema, settings) };
    const compiled = parts.get(`${fullKey}/${kind.key}`, settings, { ...shared, path: at.path }, (inside) =>
      kind.compile(settings, inside),
    );
    return [{ key: kind.key, origin, ...compiled }];
  });
}

/** Stands where a backend is not valid, until the configuration is refused. */
const NO_BACKEND: Backend = {
  handle: () => Promise.reject(new Error('not configured')),
  close: () => Promise.resolve(),
};

function openBackend(
  kinds: Readonly<Record<string, unknown>>,
  context: CompileContext,
  name: string,
  isNested: boolean,
): Backend {
  const present = (backendKinds as readonly BackendKind[]).filter(({ key }) => kinds[key] !== undefined);
  const [kind] = present;
  if (present.length !== 1 || kind === undefined) {
    context.report({
      code: 'AGW0105',
      message: present.length === 0 ? 'the backend is empty' : 'the backend has more than one kind',
      label: `expected exactly one of ${backendKinds.map(({ key }) => `\`${key}\``).join(', ')}`,
    });
    return NO_BACKEND;
  }
  return kind.open(kinds[kind.key], isNested ? context.at(kind.key) : context, name);
}
