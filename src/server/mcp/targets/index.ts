import { mcp } from './http/http.ts';
import { sse } from './http/sse.ts';
import { openapi } from './openapi/target.ts';
import { stdio } from './stdio/stdio.ts';

/** All kinds of targets: one line per kind. Each entry of `targets[]` has exactly one of these keys. */
export const targetKinds = [stdio, mcp, sse, openapi] as const;
