import { AppError } from '../../../core/errors.ts';
import { tryEvaluate } from '../../expressions/cel/expression.ts';
import { requestScope } from '../../expressions/scopes.ts';
import { resolverFor } from '../../expressions/variable.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { TracedExpression } from '../../kernel/expression.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import type { Target } from '../connection/target.ts';
import { namePattern } from '../names/name-pattern.ts';
import { outwardName } from '../names/names.ts';
import { type ItemAccess, itemAccess, type ShownBundle, shownBundle } from '../request-fields.ts';
import type { BundleConfig } from './bundle-config.ts';

/** The bundles of one MCP backend. */
export class Bundles {
  readonly #bundles: readonly Bundle[];
  /** Whether a bundle is for some callers only. */
  readonly #areForSome: boolean;

  constructor(bundles: readonly Bundle[]) {
    this.#bundles = bundles;
    this.#areForSome = bundles.some(({ when }) => when !== undefined);
  }

  /**
   * Restricts a request to the bundle that its path names or that its caller has. Throws `route_not_found` for the path of no
   * bundle, or of one that the caller does not have, and for a caller without a bundle if bundles are for some callers: with a
   * mistyped path or expression, a client would have everything.
   */
  apply(ctx: RequestContext): void {
    const segment = segmentOf(ctx);
    const bundle =
      segment === undefined
        ? this.#bundles.find((each) => each.when !== undefined && each.isFor(ctx))
        : this.#bundles.find(({ name }) => name === segment);
    if (bundle?.isFor(ctx) !== true) {
      if (segment === undefined && !this.#areForSome) return;
      throw new AppError('route_not_found', {
        message: `mcp: there is no bundle at ${ctx.path} for this caller`,
      });
    }
    ctx.observer?.emit({
      type: 'policyEvent',
      kind: 'mcp_bundle',
      details: {
        bundle: bundle.name,
        because: segment === undefined ? '`when` is true' : 'the path names it',
      },
    });
    itemAccess.set(ctx, new BundleAccess(bundle, itemAccess.get(ctx)));
    shownBundle.set(ctx, bundle);
  }
}

/**
 * The segment behind the path of the route, where a bundle is named; undefined for the path of the route itself, also with
 * the endings of the transports.
 */
function segmentOf({ path, matchedPath }: RequestContext): string | undefined {
  const base = matchedPath?.kind === 'prefix' ? matchedPath.value : path;
  const rest = path
    .slice(base.length)
    .split('/')
    .filter((segment) => segment !== '');
  if (rest[0] === 'mcp') rest.shift();
  if (rest.at(-1) === 'sse') rest.pop();
  return rest.length === 0 ? undefined : rest.join('/');
}

/** One bundle, compiled. */
class Bundle implements ShownBundle {
  readonly name: string;
  readonly when: TracedExpression | undefined;
  readonly instructions: string | undefined;
  readonly #descriptions: ReadonlyMap<string, string>;
  readonly #tools: readonly string[];
  /** Whether not all tools of its targets belong to it. */
  readonly choosesTools: boolean;
  readonly #hasTool: (name: string) => boolean;
  readonly #hasTarget: (name: string) => boolean;
  /** Whether it has prompts and resources. */
  readonly #hasOthers: boolean;
  readonly #targets: ReadonlyMap<string, Target>;
  readonly #prefixed: boolean;

  constructor(config: BundleConfig, when: TracedExpression | undefined, { targets, prefixed }: Backend) {
    this.name = config.name;
    this.when = when;
    this.instructions = config.instructions;
    this.#descriptions = new Map(Object.entries(config.descriptions));
    this.#tools = config.tools ?? ['*'];
    this.choosesTools = config.tools !== undefined;
    this.#hasTool = namePattern(this.#tools);
    this.#hasTarget = namePattern(config.targets ?? ['*']);
    this.#hasOthers = config.targets !== undefined;
    this.#targets = new Map(targets.map((target) => [target.name, target]));
    this.#prefixed = prefixed;
  }

  /** Whether the caller has the bundle. Not if the expression fails. */
  isFor(ctx: RequestContext): boolean {
    if (this.when === undefined) return true;
    return tryEvaluate(this.when, resolverFor(ctx)) === true;
  }

  /** Whether an item, with its name at the target, belongs to the bundle. */
  has(kind: string, target: string, own: string): boolean {
    if (!this.#hasTarget(target)) return false;
    if (kind === 'task') return true;
    if (kind !== 'tool') return this.#hasOthers;
    const shown = this.#shown(target, own);
    return shown !== undefined && this.#hasTool(shown);
  }

  /** Whether it may have a tool of that target, whatever the target lists. */
  mayUse(target: string): boolean {
    if (!this.#hasTarget(target)) return false;
    const prefix = this.#prefixed ? outwardName('tool', target, '') : '';
    return this.#tools.some((pattern) => {
      const [start = ''] = pattern.split('*');
      return start.startsWith(prefix) || (start !== pattern && prefix.startsWith(start));
    });
  }

  /** The description of a tool here; undefined if it is that of the target. */
  description(target: string, own: string): string | undefined {
    return this.#descriptions.size === 0 ? undefined : this.#descriptions.get(this.#shown(target, own) ?? '');
  }

  /** The name that clients see. */
  #shown(target: string, own: string): string | undefined {
    const tools = this.#targets.get(target)?.tools;
    const name = tools === undefined ? own : tools.shown(own);
    return name === undefined || !this.#prefixed ? name : outwardName('tool', target, name);
  }
}

/** What belongs to a bundle, and the rules allow. */
class BundleAccess implements ItemAccess {
  readonly #bundle: Bundle;
  readonly #rules: ItemAccess | undefined;

  constructor(bundle: Bundle, rules: ItemAccess | undefined) {
    this.#bundle = bundle;
    this.#rules = rules;
  }

  get decidesByName(): boolean {
    return this.#bundle.choosesTools || this.#rules?.decidesByName === true;
  }

  allows(kind: string, target: string, name: string, args?: unknown): boolean {
    if (!this.#bundle.has(kind, target, name)) return false;
    return this.#rules?.allows(kind, target, name, args) ?? true;
  }

  lists(target: string, tool: string): boolean {
    return this.#bundle.has('tool', target, tool) && (this.#rules?.lists(target, tool) ?? true);
  }

  mayUse(target: string): boolean {
    return this.#bundle.mayUse(target) && (this.#rules?.mayUse(target) ?? true);
  }
}

interface Backend {
  readonly targets: readonly Target[];
  readonly prefixed: boolean;
}

/** Compiles `bundles` and reports names that occur twice, and patterns that match no target. */
export function compileBundles(
  config: readonly BundleConfig[],
  backend: Backend,
  context: CompileContext,
): Bundles | undefined {
  const names = new Set<string>();
  const bundles = config.map((each, index) => {
    const at = context.at(index);
    if (names.has(each.name))
      at.at('name').report({
        code: 'AGW0106',
        message: `two bundles are named \`${each.name}\``,
        help: 'give each bundle its own name',
      });
    names.add(each.name);
    for (const [position, pattern] of (each.targets ?? []).entries())
      if (!backend.targets.some(({ name }) => namePattern([pattern])(name)))
        at.at('targets', position).report({
          code: 'AGW0104',
          message: `no target is named \`${pattern}\``,
          label: `targets: ${backend.targets.map(({ name }) => name).join(', ')}`,
          help: 'write the name of a target',
        });
    return new Bundle(
      each,
      each.when === undefined ? undefined : at.at('when').cel(each.when, requestScope),
      backend,
    );
  });
  return bundles.length === 0 ? undefined : new Bundles(bundles);
}
