import type { Path } from '../../core/diagnostic.ts';
import type { PathMode } from '../kernel/request/request-target.ts';
import { type KnownBackend, knownBackends } from './plan/backend-kinds.ts';
import { type GatewayPlan, type LocatedProblem, type PolicyPlan, routesOf } from './plan/plan.ts';

const TARGET = String.raw`request\s*\.\s*(?:path|uri|pathAndQuery)`;
/** A path that a rule is about, compared as text. */
const ABOUT_PATH = new RegExp(
  String.raw`${TARGET}\s*(?:\.\s*(?:startsWith|endsWith|contains|matches)\s*\(|==|in\b)`,
);
/** The same, refused by a rule that must be true. */
const NOT_PATH = new RegExp(
  String.raw`!\s*\(?\s*${TARGET}\s*(?:\.\s*(?:startsWith|endsWith|contains|matches)\s*\(|in\b)|${TARGET}\s*!=`,
);

/**
 * Notes on rules that deny a path of a plain HTTP service. Many services ignore what follows `;` in a segment (path
 * parameters, RFC 3986 §3.3): they take `/admin;x=1` as `/admin`, which the rule does not. MCP and LLM backends have paths of
 * the gateway, which ignores nothing.
 */
export function pathParameterProblems(gateways: readonly GatewayPlan[], mode: PathMode): LocatedProblem[] {
  if (mode === 'reject') return [];
  return gateways.flatMap((gateway) => {
    const ofListeners = gateway.listeners.flatMap(({ policies, routes }) =>
      routes.some(({ backends }) => knownBackends(backends).some(isService)) ? policies : [],
    );
    const ofRoutes = routesOf(gateway).flatMap(({ policies, backends }) => {
      const services = backends.filter((backend) => knownBackends([backend]).some(isService));
      return services.length === 0 ? [] : [...policies, ...services.flatMap((service) => service.policies)];
    });
    return [...ofListeners, ...ofRoutes].flatMap(problemsOf);
  });
}

const isService = ({ kind, settings }: KnownBackend): boolean => kind.connectsTo(settings).kind === 'service';

function problemsOf({ key, config, path }: PolicyPlan): LocatedProblem[] {
  if (key !== 'authorization') return [];
  return textsIn(config, path).flatMap(({ text, at }) => {
    const isDeny = at.at(-1) === 'deny';
    const isRequire = at.at(-1) === 'require' || typeof at.at(-1) === 'number';
    if (!(isDeny && ABOUT_PATH.test(text)) && !(isRequire && NOT_PATH.test(text))) return [];
    return [
      {
        code: 'AGW0315' as const,
        severity: 'note' as const,
        path: at,
        message: 'this rule does not deny the path with parameters, such as `/admin;x=1`',
        label: 'services that ignore path parameters, as many in Java do, take it as the same path',
        help: 'set `config.http.pathNormalization: reject`, which refuses `;` in paths, unless the service treats `;` like any other character',
      },
    ];
  });
}

/** All texts of the settings, also where these are conditional. */
function textsIn(value: unknown, at: Path): { readonly text: string; readonly at: Path }[] {
  if (typeof value === 'string') return [{ text: value, at }];
  if (Array.isArray(value)) return value.flatMap((item, index) => textsIn(item, [...at, index]));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => textsIn(item, [...at, key]));
}
