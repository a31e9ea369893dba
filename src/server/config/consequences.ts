import type { Diagnostic, DiagnosticCode, Path } from '../../core/diagnostic.ts';

/**
 * Whether a problem of what could be saved of a configuration is one of the file too, and not only a consequence of
 * what was lost. In doubt it is left out: the next run, without the damage, will say it.
 *
 * @param damaged Places of the text that were refused, with whatever is in them.
 */
export function isFirstHand({ code, path }: Diagnostic, damaged: readonly Path[]): boolean {
  // Found in the text itself, so that only a value which is not known is excused.
  if (code === 'AGW0302')
    return !damaged.some((place) => place.length === path.length && within(path, place));
  if (damaged.some((place) => within(path, place))) return false;
  // A policy or an address that was lost may be what bounds the callers.
  if (code === 'AGW0312') return false;
  // An address that was lost leaves the default one, which nobody may have meant.
  if (code === 'AGW0106' && (isRouting(path) || path[0] === 'config'))
    return !damaged.some((place) => (place[0] === 'config' && place.length <= 2) || isAddress(place));
  if (isOfOneValue(code)) return !damaged.some((place) => within(place, path));
  if (damaged.some((place) => isInput(place, code, path))) return false;
  // What a policy would have an effect on may be among the backends that were lost.
  if (code === 'AGW0303' && damaged.some((place) => isBesidePolicies(place, path))) return false;
  // What a route lacks stands in the route; what leads to it, or takes its requests, may stand anywhere.
  const isOfOneRoute = code === 'AGW0103' || code === 'AGW0301';
  return isOfOneRoute || !isRouting(path) || !damaged.some(isRouting);
}

/** The address of a gateway; without it, the gateway would listen on all of them. */
function isAddress(place: Path): boolean {
  return place[0] === 'gateways' && place.length === 3 && place[2] === 'address';
}

function within(path: Path, outer: Path): boolean {
  return outer.length <= path.length && outer.every((segment, index) => segment === path[index]);
}

/** Problems that follow from nothing but the value at their place: an expression, a file, a name of two things. */
function isOfOneValue(code: DiagnosticCode): boolean {
  return code.startsWith('AGW02') || ['AGW0005', 'AGW0101', 'AGW0102', 'AGW0104', 'AGW0106'].includes(code);
}

/** Whether what stands at `place` may have decided about the problem at `path`. */
function isInput(place: Path, code: DiagnosticCode, path: Path): boolean {
  // A target or backend that is not exactly one of several kinds says so at its place in its list.
  const isOfEntry = code === 'AGW0105' && typeof path.at(-1) === 'number';
  const section = isOfEntry ? path : sectionOf(path);
  if (!within(place, section)) return false;
  const isShortForm = section.length === 1 && path.length > 1;
  return !isShortForm || place[1] !== 'policies';
}

/** Whether `place` is in the route of the policy around `path`, but not among its policies. */
function isBesidePolicies(place: Path, path: Path): boolean {
  const index = path.indexOf('policies');
  return index !== -1 && within(place, path.slice(0, index)) && place[index] !== 'policies';
}

/** The policy or backend around `path`, which is compiled from nothing else; `path` itself outside of them. */
function sectionOf(path: Path): Path {
  const start = path.findIndex((segment) => segment === 'policies' || segment === 'backends');
  if (start !== -1) return path.slice(0, start + 2);
  return isRouting(path) || path[0] === 'config' ? path : path.slice(0, 1);
}

/** Whether `path` has to do with which requests go where, rather than with what becomes of them. */
function isRouting(path: Path): boolean {
  const [first, second] = path;
  if (first === 'config' || first === 'frontendPolicies') return false;
  if (first === 'mcp' || first === 'llm')
    return path.length <= 1 || second === 'port' || second === 'gateways';
  // The first two are `routes` and a number, or `gateways` and a name.
  return !path.slice(2).some((segment) => segment === 'policies' || segment === 'backends');
}
