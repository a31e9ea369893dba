import { z } from 'zod';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { withoutMembers, withText } from '../../kernel/json/json-text.ts';
import { namePattern } from './name-pattern.ts';
import { maxResultTokensSchema, type ResultLimit, resultLimit } from './result-limits.ts';
import { UnmatchedNames } from './unmatched-names.ts';

/** "Tool Names" of MCP 2025-11-25: 1 to 128 of these characters. */
const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/;

const patterns = z.array(z.string().min(1));

/** `targets[].tools`. All names are those that the target itself uses, before a prefix is added. */
export const toolViewSchema = z.lazy(() =>
  z
    .strictObject({
      include: patterns
        .min(1)
        .optional()
        .describe('Names of the tools to offer; `*` matches any characters. Default: all.'),
      exclude: patterns
        .default([])
        .describe('Names of tools to leave out, also if `include` has them; `*` matches any characters.'),
      rename: z
        .record(
          z.string().min(1),
          z.string().regex(TOOL_NAME, {
            error: 'expected 1 to 128 letters, digits, `_`, `-` and `.`',
          }),
        )
        .default({})
        .describe(
          'New names of tools, by the name that the target uses. The old name is then unknown; a tool that already has the new name is left out.',
        ),
      descriptions: z
        .record(z.string().min(1), z.string())
        .default({})
        .describe('Texts that replace the descriptions of tools, by the name that the target uses.'),
      maxResultTokens: maxResultTokensSchema.optional(),
    })
    .describe(
      'Tools of this target that clients see, and how. A tool that is left out fails like an unknown one. Rules, logs and metrics use the name that the target uses.',
    ),
);

type ToolViewConfig = z.output<typeof toolViewSchema>;

/**
 * The tools of one target as clients see them: which ones, under which names, with which descriptions. The configuration
 * alone decides, so names can be converted before the target has listed its tools.
 */
export class ToolView {
  readonly #isIncluded: (name: string) => boolean;
  readonly #shown: ReadonlyMap<string, string>;
  readonly #own: ReadonlyMap<string, string>;
  readonly #descriptions: ReadonlyMap<string, string>;
  /** Set if results of tools have a limit (`maxResultTokens`). */
  readonly maxResultTokens: ResultLimit | undefined;
  readonly unmatched: UnmatchedNames;
  /** Whether clients do not see all names of the target. */
  readonly decidesByName: boolean;

  constructor({ include, exclude, rename, descriptions, maxResultTokens }: ToolViewConfig) {
    const included = namePattern(include ?? ['*']);
    const excluded = namePattern(exclude);
    this.#isIncluded = (name) => included(name) && !excluded(name);
    this.#shown = new Map(Object.entries(rename));
    this.#own = new Map([...this.#shown].map(([own, shown]) => [shown, own]));
    this.#descriptions = new Map(Object.entries(descriptions));
    this.decidesByName = include !== undefined || exclude.length > 0 || this.#shown.size > 0;
    this.maxResultTokens = maxResultTokens === undefined ? undefined : resultLimit(maxResultTokens);
    this.unmatched = new UnmatchedNames({
      include: include ?? [],
      exclude,
      rename: Object.keys(rename),
      descriptions: Object.keys(descriptions),
      maxResultTokens: typeof maxResultTokens === 'object' ? Object.keys(maxResultTokens) : [],
    });
  }

  /** Whether the filters let a tool of the target pass. */
  includes(own: string): boolean {
    return this.#isIncluded(own);
  }

  /**
   * The name under which clients see a tool of the target; undefined if they do not see it. A new name hides another tool
   * that has it already: otherwise calls would be ambiguous.
   */
  shown(own: string): string | undefined {
    if (!this.#isIncluded(own)) return undefined;
    const renamed = this.#shown.get(own);
    if (renamed !== undefined) return renamed;
    return this.#own.has(own) ? undefined : own;
  }

  /** Reverses `shown`: the target's name of a tool that a client names; undefined if clients do not see such a tool. */
  own(shown: string): string | undefined {
    const own = this.#own.get(shown) ?? shown;
    return this.shown(own) === shown ? own : undefined;
  }

  /**
   * Changes name and description in the definition of a tool, given as JSON text, and removes the output schema of one whose results
   * are limited: clients refuse results without the structured content that it promises. All other members stay as sent.
   */
  edit(definition: string, own: string): string {
    const renamed = withText(definition, 'name', this.#shown.get(own));
    const edited = withText(renamed, 'description', this.#descriptions.get(own));
    return this.maxResultTokens?.(own) === undefined
      ? edited
      : withoutMembers(edited, [], (key) => key === 'outputSchema');
  }
}

/** Compiles `targets[].tools` and reports names that collide or have no effect. Undefined if there is nothing to change. */
export function compileToolView(
  config: ToolViewConfig | undefined,
  context: CompileContext,
): ToolView | undefined {
  if (config === undefined) return undefined;
  const view = new ToolView(config);
  reportCollisions(config, context);
  for (const key of ['rename', 'descriptions', 'maxResultTokens'] as const) {
    const names = config[key];
    for (const own of typeof names === 'object' ? Object.keys(names) : []) {
      if (own.includes('*')) {
        if (key === 'maxResultTokens') continue;
        context.at(key, own).report({
          code: 'AGW0104',
          atKey: true,
          message: `\`${key}\` takes exact names, no patterns`,
          label: '`*` matches nothing here',
          help: 'write an entry for each tool, with the name that the target uses',
        });
        continue;
      }
      if (view.includes(own)) continue;
      context.at(key, own).report({
        code: 'AGW0303',
        atKey: true,
        message: `\`tools.${key}\` has no effect on \`${own}\`, which is left out`,
        label:
          'clients do not see this tool: `include` and `exclude` decide on the name that the target uses',
        help: 'remove this entry, or include the tool',
      });
    }
  }
  return view;
}

function reportCollisions({ rename }: ToolViewConfig, context: CompileContext): void {
  const users = new Map<string, string>();
  for (const [own, shown] of Object.entries(rename)) {
    const first = users.get(shown);
    if (first === undefined) {
      users.set(shown, own);
      continue;
    }
    context.at('rename', own).report({
      code: 'AGW0106',
      message: `two tools are renamed to \`${shown}\``,
      label: `the other one is \`${first}\``,
      help: 'give each tool its own name',
    });
  }
}
