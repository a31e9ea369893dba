import type { AppError } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import type { RequestContext } from '../kernel/request-context.ts';
import { refusedModel } from './call.ts';
import { llmError } from './errors.ts';

// The client messages are fixed and contain no model names, because those may be confidential. The log has the details.

/** 404: the model does not exist. `listed`: existing names, for the log. */
export function unknownModel(ctx: RequestContext, requested: string, listed: readonly string[]): AppError {
  refusedModel.set(ctx, shown(requested));
  const detail = `unknown model ${JSON.stringify(shown(requested))}; available: ${namesOf(listed)}`;
  return llmError('llm_not_found', 'model_not_found', 'Model not found', detail);
}

/** 403: the caller's API key does not allow the model. `allowed`: allowed patterns, for the log. */
export function forbiddenModel(ctx: RequestContext, requested: string, allowed: readonly string[]): AppError {
  refusedModel.set(ctx, shown(requested));
  const detail = `the API key does not allow the model ${JSON.stringify(shown(requested))}; allowed: ${namesOf(allowed)}`;
  return llmError('llm_forbidden', 'model_not_allowed', 'Model is not allowed for this API key', detail);
}

const shown = (name: string): string =>
  name.length <= LIMITS.shownModelName ? name : `${name.slice(0, LIMITS.shownModelName)}…`;

function namesOf(names: readonly string[]): string {
  if (names.length === 0) return 'none';
  const rest = names.length - LIMITS.shownModels;
  const first = names.slice(0, LIMITS.shownModels).map(shown).join(', ');
  return rest > 0 ? `${first}, and ${rest} more` : first;
}
