import { isRecord, membersOf } from '../../core/foreign.ts';
import type { ShownBound } from '../../core/overview.ts';
import { type MemoryUsage, memoryUsage } from '../../server/workers/memory-usage.ts';
import { answersOf } from '../../server/workers/process-view.ts';
import { defineEndpoint, sendJson, shows } from '../endpoint.ts';
import { ownBounds } from '../own-bounds.ts';

/**
 * Memory usage, and every bounded buffer with its use and maximum. Member names are upstream's. With several workers, the
 * figures are the sums of all processes, and `processes` has those of each.
 */
export const memory = defineEndpoint({
  path: '/memory',
  methods: { GET: shows('viewer') },
  async handle(_request, reply, admin) {
    const { processes } = admin.gateway;
    const each = await answersOf(processes, async (process) => ({
      name: process.name,
      ...(await process.memory()),
      bounds: await process.bounds(),
    }));
    const figures = each.map(({ bounds, cgroup, ...memory }) => memory);
    if (processes.length > 1) figures.unshift({ name: 'primary', ...withoutGroup(await memoryUsage()) });
    const [first = {}, ...others] = figures.map(({ name, ...memory }) => memory);
    return sendJson(reply, {
      captured_at_unix_ms: Date.now(),
      capture_mode: 'v8',
      ...membersOf(others.reduce<unknown>(sum, first)),
      // The kernel limits all processes together.
      cgroup: each[0]?.cgroup ?? null,
      bounds: [...each.flatMap(({ name, bounds }) => located(name, bounds)), ...(await ownBounds(admin))],
      ...(processes.length === 1 ? {} : { processes: figures }),
    });
  },
});

const withoutGroup = ({ cgroup, ...memory }: MemoryUsage): Omit<MemoryUsage, 'cgroup'> => memory;

/** Says where the bounds are, if there are several processes. */
function located(name: string | undefined, bounds: readonly ShownBound[]): readonly ShownBound[] {
  if (name === undefined) return bounds;
  return bounds.map(({ at, ...bound }) => ({ ...bound, at: at === undefined ? name : `${name}: ${at}` }));
}

/** Adds the numbers of two values of the same shape; anything else is that of the first. */
function sum(a: unknown, b: unknown): unknown {
  if (typeof a === 'number' && typeof b === 'number') return a + b;
  if (!isRecord(a) || !isRecord(b)) return a;
  return Object.fromEntries(Object.entries(a).map(([key, value]) => [key, sum(value, b[key])]));
}
