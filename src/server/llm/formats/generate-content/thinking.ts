import type { Reasoning } from '../../chat/chat.ts';
import type { Json } from '../../chat/chat-format.ts';
import { type Effort, effortOf } from '../../chat/effort.ts';

/** Gemini 2.5 takes a number of tokens, later models a level (Gemini API, "OpenAI compatibility", "Thinking"). */
export function thinkingConfig(reasoning: Reasoning, model: string): Json {
  const { effort, budgetTokens, summary } = reasoning;
  // A client that sets a budget uses the Messages API, whose answers contain the reasoning.
  const thoughts = summary !== undefined || budgetTokens !== undefined ? { includeThoughts: true } : {};
  const wanted = effortOf(reasoning);
  if (wanted === undefined) return thoughts;
  if (!/gemini-2\./.test(model))
    return { thinkingLevel: levelOf(wanted, model), ...(wanted === 'none' ? {} : thoughts) };
  const [least, most] = rangeOf(model);
  if (wanted === 'none') return { thinkingBudget: model.includes('pro') ? least : 0 };
  const budget = budgetTokens ?? BUDGETS[effort ?? wanted];
  return { thinkingBudget: Math.min(most, Math.max(least, budget)), ...thoughts };
}

const BUDGETS = { none: 0, minimal: 1024, low: 1024, medium: 8192, high: 24_576, xhigh: 24_576, max: 24_576 };

/** Budgets that Gemini 2.5 accepts besides 0, with which only Pro cannot be turned off. */
function rangeOf(model: string): readonly [least: number, most: number] {
  if (model.includes('pro')) return [128, 32_768];
  return [model.includes('lite') ? 512 : 1, 24_576];
}

/** Later models always think; Pro has no level below low. */
function levelOf(effort: Effort, model: string): string {
  const isLeast = effort === 'none' || effort === 'minimal';
  if (isLeast) return model.includes('pro') ? 'LOW' : 'MINIMAL';
  return effort === 'xhigh' || effort === 'max' ? 'HIGH' : effort.toUpperCase();
}
