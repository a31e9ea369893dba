import { ADMIN_LIMITS } from './limits/admin.ts';
import { COMMANDS_LIMITS } from './limits/commands.ts';
import { DATABASE_LIMITS } from './limits/database.ts';
import { HTTP_LIMITS } from './limits/http.ts';
import { LLM_LIMITS } from './limits/llm.ts';
import { MCP_LIMITS } from './limits/mcp.ts';
import { OBSERVE_LIMITS } from './limits/observe.ts';
import { OPENAPI_LIMITS } from './limits/openapi.ts';
import { POLICIES_LIMITS } from './limits/policies.ts';
import { PROCESS_LIMITS } from './limits/process.ts';
import { RECORD_LIMITS } from './limits/record.ts';

/**
 * Every bound of the gateway and its commands; those of the memory components are in `memory-limits.ts`. Each bound has
 * a stated outcome when it is exceeded, and every buffer, queue and wait has a bound. Times are in ms and sizes in
 * bytes unless a comment says otherwise. Values marked (Node) or (upstream) are defaults of Node.js or of upstream; the
 * others were chosen for a small shared machine.
 */
export const LIMITS = {
  ...HTTP_LIMITS,
  ...MCP_LIMITS,
  ...OPENAPI_LIMITS,
  ...POLICIES_LIMITS,
  ...LLM_LIMITS,
  ...OBSERVE_LIMITS,
  ...PROCESS_LIMITS,
  ...DATABASE_LIMITS,
  ...RECORD_LIMITS,
  ...COMMANDS_LIMITS,
  ...ADMIN_LIMITS,
} as const;

/** `LIMITS` with other values. Compiled components get their limits from `RuntimeSettings.limits`. */
export type Limits = {
  readonly [Name in keyof typeof LIMITS]: (typeof LIMITS)[Name] extends number
    ? number
    : (typeof LIMITS)[Name];
};
