import type { PolicyDefinition } from '../server/policies/modules/api.ts';

export type {
  LlmCall,
  McpCall,
  McpResult,
  OptionsIssue,
  OptionsResult,
  OptionsSchema,
  PolicyAnswer,
  PolicyCaller,
  PolicyContext,
  PolicyDefinition,
  PolicyHeaders,
  PolicyRequest,
  PolicyResponse,
} from '../server/policies/modules/api.ts';

/** Says what a policy is: `export default definePolicy({ name: 'team', request() {} })`. Only for its types: returns the same object. */
export function definePolicy<Options = undefined>(
  definition: PolicyDefinition<Options>,
): PolicyDefinition<Options> {
  return definition;
}
