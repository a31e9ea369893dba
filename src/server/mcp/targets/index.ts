import { mcp } from './http.ts';
import { stdio } from './stdio.ts';

/** Every kind of target; each entry of `targets[]` has exactly one of these keys. */
export const targetKinds = [stdio, mcp] as const;
