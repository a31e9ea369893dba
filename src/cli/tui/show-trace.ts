import type { Context } from '../context.ts';
import type { TracePlan } from '../proxy/trace-options.ts';

export async function showTrace(
  _plan: TracePlan,
  _context: Context & { readonly color: string },
): Promise<number> {
  return 0;
}
