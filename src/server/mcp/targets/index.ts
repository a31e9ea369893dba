import { mcp } from './http.ts';
import { openapi } from './openapi/target.ts';
import { sse } from './sse.ts';
import { stdio } from './stdio.ts';

/** All kinds of targets: one line per kind. Each entry of `targets[]` has exactly one of these keys. */
export const targetKinds = [stdio, mcp, sse, openapi] as const;
