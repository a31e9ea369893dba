import { llm } from './llm/backend.ts';
import { mcp } from './mcp/backend.ts';
import { host } from './transport/host-backend.ts';

/** Every kind of backend; each entry of `backends[]` has exactly one of these keys. */
export const backendKinds = [mcp, llm, host] as const;
