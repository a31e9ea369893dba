import { readFile } from 'node:fs/promises';
import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8';

export type MemoryUsage = Awaited<ReturnType<typeof memoryUsage>>;

/** Memory of this process in bytes. Member names are upstream's. */
export async function memoryUsage() {
  const heap = getHeapStatistics();
  const usage = process.memoryUsage();
  return {
    allocation_stats: {
      allocated: heap.used_heap_size + usage.external,
      heap_used: usage.heapUsed,
      heap_total: usage.heapTotal,
      external: usage.external,
      array_buffers: usage.arrayBuffers,
      resident: usage.rss,
    },
    allocator: {
      kind: 'v8',
      comparable: {
        allocated_bytes: heap.used_heap_size,
        active_bytes: heap.total_physical_size,
        resident_bytes: usage.rss,
        mapped_bytes: heap.total_heap_size,
        // Reserved from the system but free; V8's `total_available_size` counts up to the heap limit instead.
        retained_bytes: heap.total_heap_size - heap.used_heap_size,
        metadata_bytes: heap.malloced_memory,
        committed_bytes: heap.total_heap_size,
        allocator_structures: heap.number_of_native_contexts,
      },
      specific: {
        heap_size_limit: heap.heap_size_limit,
        peak_malloced_memory: heap.peak_malloced_memory,
        number_of_detached_contexts: heap.number_of_detached_contexts,
        spaces: Object.fromEntries(
          getHeapSpaceStatistics().map((space) => [space.space_name, space.space_used_size]),
        ),
      },
    },
    cgroup: await cgroup(),
    smaps: await smaps(),
  };
}

/** Converts `Rss:  1234 kB` to `rss: 1263616`. Null if the file does not exist. */
async function smaps(): Promise<Readonly<Record<string, number>> | null> {
  const text = await optional('/proc/self/smaps_rollup');
  if (text === undefined) return null;
  const fields = [...text.matchAll(/^(\w+):\s+(\d+) kB$/gm)].map(
    ([, name = '', kilobytes]): [string, number] => [snakeCase(name), Number(kilobytes) * 1024],
  );
  return Object.fromEntries(fields);
}

function snakeCase(name: string): string {
  return name
    .replace(/([a-z])([A-Z])/g, '$1_$2')
    .replace(/([A-Za-z])PmdMapped/g, '$1_pmd_mapped')
    .toLowerCase();
}

/** Memory of the control group (version 2), if the kernel limits it. */
async function cgroup(): Promise<Readonly<Record<string, number>> | null> {
  const group = /^0::(.*)$/m.exec((await optional('/proc/self/cgroup')) ?? '')?.[1];
  if (group === undefined) return null;
  for (const folder of [`/sys/fs/cgroup${group}`, '/sys/fs/cgroup']) {
    const [current, stat] = await Promise.all([
      optional(`${folder}/memory.current`),
      optional(`${folder}/memory.stat`),
    ]);
    if (current === undefined || stat === undefined) continue;
    const fields = Object.fromEntries(
      [...stat.matchAll(/^(\w+) (\d+)$/gm)].map(([, name = '', value]): [string, number] => [
        name,
        Number(value),
      ]),
    );
    const usage = Number(current);
    return { usage, working_set: Math.max(0, usage - (fields['inactive_file'] ?? 0)), ...fields };
  }
  return null;
}

function optional(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(() => undefined);
}
