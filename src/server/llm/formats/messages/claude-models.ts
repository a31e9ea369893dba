/**
 * What the Messages API expects differs between generations of models. The older ones are a closed list, so newer names
 * need no change here. Other vendors with this API (DeepSeek, Moonshot, vLLM) follow the older generation.
 */
const OLDER = /claude-(?:3\b|(?:opus|sonnet|haiku)-4(?:[-.][015])?(?:$|[@:]|-(?:\d{8}|latest|v\d)))/;

/** Whether `thinking` has a budget. Newer models have the type `adaptive` with an effort, and refuse budgets. */
export function hasThinkingBudget(model: string): boolean {
  return !model.includes('claude') || OLDER.test(model);
}

/** Claude 4, Opus 5, Sonnet 5 and all of Haiku 5. */
const CAN_STOP_THINKING = /claude-(?:[a-z]+-4(?!\d)|(?:opus|sonnet)-5(?!\d|[-.]\d\b)|haiku-5(?!\d))/;

/**
 * The type of `thinking` for the least of it (Anthropic: "What's new in Claude Opus 5.5", and in Sonnet 5.5). Undefined: the
 * model always thinks, and refuses to be told otherwise. Those that came later are taken for such. A name without a version
 * does not tell.
 */
export function leastThinking(model: string): 'disabled' | 'between_tools' | undefined {
  if (!/claude-[a-z]+-\d/.test(model) || CAN_STOP_THINKING.test(model)) return 'disabled';
  return /claude-sonnet-5[-.]\d\b/.test(model) ? 'between_tools' : undefined;
}

/**
 * Whether the model has sampling parameters: Claude refuses them since Opus 4.7. A name without a version, such as that of a
 * deployment, does not tell, and what the client asks for is sent.
 */
export function hasSampling(model: string): boolean {
  return (
    !/claude-[a-z]+-\d/.test(model) || OLDER.test(model) || /claude-(?:opus|sonnet)-4[-.]6\b/.test(model)
  );
}

/**
 * `max_tokens` is required; this is its value if the client set none. The smallest maximum of the generation, because a
 * larger value is refused: 4096 (Claude 3), 32,000 (Claude Opus 4). For other models: 8192, that of DeepSeek.
 * https://docs.anthropic.com/en/docs/about-claude/models/overview
 */
export function defaultMaxTokens(model: string): number {
  if (!model.includes('claude')) return 8192;
  return /claude-3\b/.test(model) ? 4096 : 32_000;
}
