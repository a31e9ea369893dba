import { z } from 'zod';
import { CelEvaluationError, CelStruct, readsUnguarded } from '../expressions/cel/expression.ts';
import { untypedSearches } from '../expressions/cel/untyped-searches.ts';
import { problemOf, ReadMembers } from '../expressions/read-members.ts';
import {
  combineRules,
  compileRules,
  hasRules,
  possibleDecision,
  type RuleConfig,
  type RulePolicy,
  type RuleSet,
  ruleList,
  rulesByEffect,
} from '../expressions/rules.ts';
import { resolverFor } from '../expressions/variable.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { TracedExpression, VariableResolver } from '../kernel/expression.ts';
import { definePolicy } from '../kernel/policy.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { warnAboutPrefixedNames } from './names/names-in-rules.ts';
import { RPC, RpcError } from './protocol/protocol.ts';
import type { ItemAccess } from './request-fields.ts';
import { itemAccess, mcpFields } from './request-fields.ts';
import { mcpAuthorizationScope } from './variables.ts';

const schema = z
  .strictObject({
    rules: ruleList(
      'CEL expressions over `mcp.tool`, `mcp.prompt`, `mcp.resource`, `mcp.task` (each with `name` and `target`), `jwt`, `request` and more. An expression alone is an `allow` rule: one that is true suffices.',
    ),
  })
  .describe(
    'Tools, prompts and resources that a caller may list and use. Others are removed from lists and calls to them fail as unknown; methods that are not part of MCP are rejected. For `mcp` backends only; use `authorization` for rules on any request.',
  );

/** Access to single items of MCP targets. The MCP backend checks each item that is listed or used. */
export const mcpAuthorization = definePolicy({
  key: 'mcpAuthorization',
  places: ['route', 'backend'],
  schema,
  trace: { kind: 'mcp_authorization', stage: 'mcp authorization', isBackendPolicy: true },
  dump: ({ rules }) => ({ mcpAuthorization: { rules: rulesByEffect(rules, 'allow') } }),
  checkRoute({ rules }, { name, backends }, context) {
    warnAboutPrefixedNames(rules, backends, context);
    if (backends.some(({ api }) => api === 'mcp')) return;
    context.report({
      code: 'AGW0303',
      atKey: true,
      message: `\`mcpAuthorization\` has no effect: route \`${name}\` has no \`mcp\` backend`,
      label: 'only `mcp` backends have tools, prompts and resources',
      help: 'configure the MCP servers as `mcp: { targets: [ … ] }`, or use `authorization` for rules on any request',
    });
  },
  compile({ rules }, context) {
    const compiled = compileRules(rules, 'allow', mcpAuthorizationScope, context, warnAboutLists);
    noteAlternatives(rules, context);
    noteHiddenItems(compiled, context);
    noteDeniedItems(compiled, context);
    warnAboutSearches(compiled, context);
    return policyOf(compiled);
  },
  combine: (policies) => policyOf(combineRules(policies.filter(hasRules).map(({ rules }) => rules))),
});

function policyOf(rules: RuleSet): RulePolicy {
  const expressions = rules.rules.map(({ expression }) => expression);
  const reads: ItemReads = {
    arguments: new ReadMembers(expressions, ['mcp', 'tool', 'arguments']),
    name: expressions.some((rule) => rule.reads('mcp.tool.name')),
  };
  return {
    rules,
    request(ctx) {
      // Rules of the backend join those of the route, so that neither can undo a `deny` rule of the other.
      const before = itemAccess.get(ctx);
      itemAccess.set(
        ctx,
        before instanceof ItemRules ? before.with(rules, reads) : new ItemRules(ctx, rules, [reads]),
      );
      return undefined;
    },
  };
}

/** What rules read of a tool. */
interface ItemReads {
  readonly arguments: ReadMembers;
  readonly name: boolean;
}

/** The rules for one request. A class: a function stored on the request would keep it alive longer than needed. */
class ItemRules implements ItemAccess {
  readonly #ctx: RequestContext;
  readonly #decide: RuleSet;
  readonly #reads: readonly ItemReads[];

  constructor(ctx: RequestContext, decide: RuleSet, reads: readonly ItemReads[]) {
    this.#ctx = ctx;
    this.#decide = decide;
    this.#reads = reads;
  }

  /** These rules and further ones, with what those read of arguments. */
  with(others: RuleSet, reads: ItemReads): ItemRules {
    return new ItemRules(this.#ctx, combineRules([this.#decide, others]), [...this.#reads, reads]);
  }

  get decidesByName(): boolean {
    return this.#reads.some(({ name }) => name);
  }

  allows(kind: string, target: string, name: string, args?: unknown): boolean {
    const ctx = this.#ctx;
    const item = args === undefined ? { name, target } : { name, target, arguments: args };
    const decision = this.#decide(this.#lookup(kind === 'template' ? 'resource' : kind, item));
    ctx.observer?.authorization('mcpAuthorization', decision, { kind, target, name });
    if (decision.allowed && args !== undefined) this.#rejectVariants(args);
    return decision.allowed;
  }

  lists(target: string, tool: string): boolean {
    const lookup = this.#lookup('tool', { name: tool, target });
    delete lookup.observed;
    return this.#decide(lookup).allowed;
  }

  #lookup(member: string, item: object): VariableResolver {
    const methodName = mcpFields.get(this.#ctx)?.method ?? null;
    return resolverFor(this.#ctx, { mcp: { methodName, [member]: item } });
  }

  mayUse(target: string): boolean {
    const lookup = resolverFor(this.#ctx);
    return ['tool', 'prompt', 'resource'].some((kind) => {
      const item = new UnknownItem(target);
      const mcp = { methodName: mcpFields.get(this.#ctx)?.method ?? null, [kind]: item };
      // Not `lookup` itself: traces would show a failure for each rule that asks for the name.
      return possibleDecision(
        this.#decide,
        (root) => (root === 'mcp' ? mcp : lookup(root)),
        () => item.wasAsked(),
      ).mayAllow;
    });
  }

  /** Of a call that the rules allow: for others, the client must not learn whether the tool exists. */
  #rejectVariants(args: unknown): void {
    for (const { arguments: reads } of this.#reads) {
      const variant = reads.isEmpty ? undefined : reads.variant(args);
      if (variant !== undefined) throw new RpcError(RPC.invalidParams, `the argument ${problemOf(variant)}`);
    }
  }
}

/** An item of which only the target is known. */
class UnknownItem extends CelStruct {
  readonly #target: string;
  #wasAsked = false;

  constructor(target: string) {
    super();
    this.#target = target;
  }

  field(name: string): unknown {
    if (name === 'target') return this.#target;
    if (name !== 'name') return undefined;
    this.#wasAsked = true;
    throw new CelEvaluationError('failed', 'the name of the item is not known');
  }

  fields(): readonly string[] {
    return ['name', 'target'];
  }

  /** Whether the name was asked for since the last call. */
  wasAsked(): boolean {
    const was = this.#wasAsked;
    this.#wasAsked = false;
    return was;
  }
}

/** Several plain rules are alternatives, unlike those of `authorization`: an exception that one of them makes has no effect. */
function noteAlternatives(rules: readonly RuleConfig[], context: CompileContext): void {
  const plain = rules.filter((rule) => typeof rule === 'string');
  if (plain.length < 2) return;
  context.at('rules').report({
    code: 'AGW0308',
    severity: 'note',
    message: `one of these ${plain.length} rules is enough`,
    label:
      'a rule without a keyword counts as `allow` in `mcpAuthorization`, and as `require` in `authorization`',
    help: 'write `allow:` before each of them to say so, `require:` if all must be true, or `deny:` for exceptions',
  });
}

/** A rule that excepts one tool from all others also decides on prompts and resources, where it fails. */
function noteHiddenItems({ rules }: RuleSet, context: CompileContext): void {
  const allows = rules.filter(({ effect }) => effect === 'allow').map(({ expression }) => expression);
  const areAboutTools = allows.length > 0 && allows.every((rule) => rule.reads('mcp.tool'));
  if (!areAboutTools || !allows.some(({ source }) => /!=|!\s*\(/.test(source))) return;
  if (allows.some((rule) => OTHER_ITEMS.some((path) => rule.reads(path)))) return;
  context.at('rules').report({
    code: 'AGW0309',
    severity: 'note',
    message: 'these rules allow no prompts, resources and tasks',
    label: '`mcp.tool` is not set for them, so each rule fails, and a failing `allow` rule allows nothing',
    help: 'to except tools from everything else, write the exception as a `deny` rule: `deny: has(mcp.tool) && mcp.tool.name == "x"`',
  });
}

/** Rules on tools that do not look whether the item is a tool deny everything else. */
function noteDeniedItems({ rules }: RuleSet, context: CompileContext): void {
  const found = rules.flatMap(({ effect, expression }, index) => {
    const areToolsOnly =
      effect !== 'allow' &&
      readsUnguarded(expression, 'mcp.tool') &&
      !OTHER_ITEMS.some((path) => expression.reads(path));
    // Otherwise there is a warning already.
    return areToolsOnly && !needsArguments(expression) ? [{ effect, index }] : [];
  });
  const [first, ...others] = found;
  if (first === undefined) return;
  const { effect, index } = first;
  const more = others.length === 0 ? '' : `; the same applies to ${others.length} more of these rules`;
  context.at('rules', index, effect).report({
    code: 'AGW0309',
    severity: 'note',
    message: `this \`${effect}\` rule also denies prompts, resources and tasks`,
    label: `\`mcp.tool\` is not set for them, so the rule fails, and a \`${effect}\` rule that fails denies${more}`,
    help: `if they may be used, begin with \`${effect === 'deny' ? 'has(mcp.tool) && ' : '!has(mcp.tool) || '}\``,
  });
}

const OTHER_ITEMS = ['mcp.prompt', 'mcp.resource', 'mcp.task'];

/** Rules also filter lists, where there are no arguments: a rule that reads them unguarded hides its tools. */
function warnAboutLists(rule: TracedExpression, context: CompileContext): void {
  if (!needsArguments(rule)) return;
  context.report({
    code: 'AGW0309',
    message: 'this rule also filters lists, where `mcp.tool.arguments` is not set',
    label: 'evaluation fails there, so the tools are missing from lists',
    help: 'begin with `!has(mcp.tool.arguments) || `, or in a `deny` rule with `has(mcp.tool) && has(mcp.tool.arguments) && `',
  });
}

/** A `deny` rule for a text in arguments lets the same text pass in a list, which some servers read like a text. */
function warnAboutSearches({ rules }: RuleSet, context: CompileContext): void {
  for (const [index, { effect, expression }] of rules.entries()) {
    if (effect !== 'deny' || !expression.reads(ARGUMENTS)) continue;
    for (const { text, start, end } of untypedSearches(expression.source, ARGUMENTS))
      context.at('rules', index, effect).report({
        code: 'AGW0319',
        message: `this \`deny\` rule lets calls pass where \`${text}\` is a list`,
        inside: { start, end },
        label: 'of a list, `contains` looks for an item that is equal, and does not fail',
        help: `write \`(type(${text}) != string || ${text}.contains(…))\`, which denies them, or say what is allowed in a \`require\` rule`,
      });
  }
}

const ARGUMENTS = 'mcp.tool.arguments';

/** Whether a rule fails without arguments. `has(mcp.tool)` reads the whole tool, and does not. */
function needsArguments(rule: TracedExpression): boolean {
  const areNamed = [...rule.paths.keys()].some(
    (path) => path === ARGUMENTS || path.startsWith(`${ARGUMENTS}.`),
  );
  return areNamed && readsUnguarded(rule, ARGUMENTS);
}
