/**
 * What the Messages API expects differs between generations of models. The older ones are a closed list, so newer names
 * need no change here. Other vendors with this API (DeepSeek, Moonshot, vLLM) follow the older generation.
 */
const OLDER = /claude-(?:3\b|(?:opus|sonnet|haiku)-4(?:[-.][015])?(?:$|[@:]|-(?:\d{8}|latest|v\d)))/;

/** Whether `thinking` has a budget. Newer models have the type `adaptive` with an effort, and refuse budgets. */
export function hasThinkingBudget(model: string): boolean {
  return !model.includes('claude') || OLDER.test(model);
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
