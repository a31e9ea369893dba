import { type ComparedText, comparedTexts } from '../../expressions/cel/expression.ts';
import { effectOf, type RuleConfig } from '../../expressions/rules.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { PolicyBackend } from '../../kernel/policy.ts';

/** A name of a tool or prompt that a rule compares with that of the item it decides on. */
export interface NameInRule extends ComparedText {
  /** Of the rule. */
  readonly index: number;
  readonly effect: 'allow' | 'deny' | 'require';
  readonly kind: 'tool' | 'prompt';
}

/** The names in rules of `mcpAuthorization`, which are those of the targets. */
export function namesInRules(rules: readonly RuleConfig[]): readonly NameInRule[] {
  return rules.flatMap((rule, index) => {
    const [effect, source] = effectOf(rule, 'allow');
    return (['tool', 'prompt'] as const).flatMap((kind) =>
      comparedTexts(source, `mcp.${kind}.name`).map((text) => ({ ...text, index, effect, kind })),
    );
  });
}

/** Warns about names with the prefix that only clients see: a `deny` rule with one denies nothing. */
export function warnAboutPrefixedNames(
  rules: readonly RuleConfig[],
  backends: readonly PolicyBackend[],
  context: CompileContext,
): void {
  const prefixes = backends.flatMap(({ connectsTo }) =>
    connectsTo.kind === 'servers' ? connectsTo.prefixes : [],
  );
  for (const { index, effect, kind, text, isStart, start, end } of namesInRules(rules)) {
    const target = prefixes.find((each) => text.startsWith(`${each}_`));
    if (target === undefined) continue;
    const own = JSON.stringify(text.slice(target.length + 1));
    const item = `mcp.${kind}`;
    const isTarget = `${item}.target == ${JSON.stringify(target)}`;
    const isName = isStart ? `${item}.name.startsWith(${own})` : `${item}.name == ${own}`;
    const at = context.at('rules', index);
    (typeof rules[index] === 'string' ? at : at.at(effect)).report({
      code: 'AGW0318',
      message: `\`${item}.name\` is the name at the target, without the prefix \`${target}_\``,
      inside: { start, end },
      label: `${own === '""' ? 'a prefix that only clients see' : `a name that clients see; rules get ${own}`}${effect === 'deny' ? `, so this denies no ${kind}` : ''}`,
      help: `write \`${own === '""' ? isTarget : `${isTarget} && ${isName}`}\``,
    });
  }
}
