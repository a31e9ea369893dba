import { type Diagnostic, type DiagnosticCode, inOrder, type Path } from '../../core/diagnostic.ts';
import { SILENT_LOG } from '../../core/log.ts';
import { isWhole, type LoadedConfig } from '../config/load.ts';
import { recoverPartialConfig } from '../config/reading/recover-partial-config.ts';
import { configSchema } from '../config/schema.ts';
import { type CompileOptions, compileRuntime } from './runtime.ts';

type Surroundings = Pick<CompileOptions, 'folder' | 'env'>;

/**
 * Returns every problem of a configuration file, without opening ports, starting processes or sending anything: those
 * found while reading it and those found by compiling it. If the schema rejects the file, its valid parts are compiled
 * anyway, and possible follow-up problems are omitted. Sorted by position in the file, without duplicates.
 */
export async function findProblems(
  loaded: LoadedConfig,
  surroundings: Surroundings,
): Promise<readonly Diagnostic[]> {
  const { config, source, diagnostics } = loaded;
  const more =
    config === undefined
      ? await problemsOfValidParts(loaded, surroundings)
      : await compileProblems({ ...surroundings, config, source });
  return inOrder([...diagnostics, ...more]);
}

async function problemsOfValidParts(
  { source, diagnostics }: LoadedConfig,
  surroundings: Surroundings,
): Promise<readonly Diagnostic[]> {
  const recovered = isWhole(diagnostics) ? recoverPartialConfig(configSchema, source) : undefined;
  if (recovered === undefined) return [];
  const { value: config, damaged, sourcePath } = recovered;
  const found = await compileProblems({ ...surroundings, config, source, sourcePath });
  return found.filter((each) => isPrimary(each, damaged));
}

async function compileProblems(options: Omit<CompileOptions, 'log'>): Promise<readonly Diagnostic[]> {
  const { runtime, diagnostics } = compileRuntime({ ...options, log: SILENT_LOG, withNotes: true });
  await runtime.close();
  return diagnostics;
}

/**
 * Whether a problem found in a partially recovered configuration is a problem of the file too, rather than a follow-up
 * of the damaged part. When in doubt, the problem is left out; the next run reports it once the damage is repaired.
 *
 * @param damaged Paths of the text that were refused, including everything inside.
 */
function isPrimary({ code, path }: Diagnostic, damaged: readonly Path[]): boolean {
  // Found in the text itself, so it is a follow-up problem only if its own value is damaged.
  if (code === 'AGW0302')
    return !damaged.some((place) => place.length === path.length && within(path, place));
  if (damaged.some((place) => within(path, place))) return false;
  // Sign-ins need keys, routes and policies from everywhere in the file.
  if (isOfSignIns(code, path)) return false;
  // The damaged part may contain the policy or address that limits the callers.
  if (code === 'AGW0312') return false;
  // Without a damaged address, the default one applies, which may not have been intended.
  if (code === 'AGW0106' && (isRouting(path) || path[0] === 'config'))
    return !damaged.some((place) => (place[0] === 'config' && place.length <= 2) || isAddress(place));
  if (isOfOneValue(code) || isMissingFile(code, path)) return !damaged.some((place) => within(place, path));
  if (damaged.some((place) => isInput(place, code, path))) return false;
  // The policy may take effect on one of the damaged backends.
  if (code === 'AGW0303' && damaged.some((place) => isOutsidePolicies(place, path))) return false;
  // What a route lacks is part of the route; what leads to it, or takes its requests, can be anywhere.
  const isOfOneRoute = code === 'AGW0103' || code === 'AGW0301';
  return isOfOneRoute || !isRouting(path) || !damaged.some(isRouting);
}

/** The address of a gateway; without it, the gateway would listen on all addresses. */
function isAddress(place: Path): boolean {
  return place[0] === 'gateways' && place.length === 3 && place[2] === 'address';
}

/** Whether the problem is what `oauth` of a target or the page of sign-ins lacks. */
function isOfSignIns(code: DiagnosticCode, path: Path): boolean {
  const isMissing = code === 'AGW0105' || code === 'AGW0305';
  if (isMissing && (path.at(-1) === 'oauth' || path.at(-1) === 'mcpSignIn')) return true;
  return (isMissing || code === 'AGW0303') && within(path, ['config', 'mcp', 'signIn']);
}

function within(path: Path, outer: Path): boolean {
  return outer.length <= path.length && outer.every((segment, index) => segment === path[index]);
}

/** Problems caused by the value at their path alone: an expression, a file, a duplicate name. */
function isOfOneValue(code: DiagnosticCode): boolean {
  return code.startsWith('AGW02') || ['AGW0005', 'AGW0101', 'AGW0102', 'AGW0104', 'AGW0106'].includes(code);
}

/** Whether the reference is to a file; the others are to entries of `gateways` and `llm`, which may be damaged. */
function isMissingFile(code: DiagnosticCode, path: Path): boolean {
  return code === 'AGW0107' && !isRouting(path) && !path.includes('llm');
}

/** Whether the value at `place` may have caused the problem at `path`. */
function isInput(place: Path, code: DiagnosticCode, path: Path): boolean {
  // A target or backend that is not exactly one of several kinds is reported at its list entry.
  const isOfEntry = code === 'AGW0105' && typeof path.at(-1) === 'number';
  const section = isOfEntry ? path : sectionOf(path);
  if (!within(place, section)) return false;
  const isShortForm = section.length === 1 && path.length > 1;
  return !isShortForm || place[1] !== 'policies';
}

/** Whether `place` is in the route of the policy around `path`, but not among its policies. */
function isOutsidePolicies(place: Path, path: Path): boolean {
  const index = path.indexOf('policies');
  return index !== -1 && within(place, path.slice(0, index)) && place[index] !== 'policies';
}

/** The policy or backend around `path`, which is compiled from nothing else; `path` itself outside of them. */
function sectionOf(path: Path): Path {
  const start = path.findIndex((segment) => segment === 'policies' || segment === 'backends');
  if (start !== -1) return path.slice(0, start + 2);
  return isRouting(path) || path[0] === 'config' ? path : path.slice(0, 1);
}

/** Whether `path` affects which requests go where, rather than how they are processed. */
function isRouting(path: Path): boolean {
  const [first, second] = path;
  if (first === 'config' || first === 'frontendPolicies') return false;
  if (first === 'mcp' || first === 'llm')
    return path.length <= 1 || second === 'port' || second === 'gateways';
  // The first two segments are `routes` and a number, or `gateways` and a name.
  return !path.slice(2).some((segment) => segment === 'policies' || segment === 'backends');
}
