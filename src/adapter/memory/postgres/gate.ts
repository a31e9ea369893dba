import { AppError } from '../../../core/errors.ts';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';

/**
 * Lets so many tasks run at once; the others wait in order, up to `MEMORY_STORE_LIMITS.queue`, then fail with
 * `memory_busy`. In front of the pool, whose own queue counts waiting as failing to connect.
 */
export function gate(width: number): <T>(task: () => Promise<T>) => Promise<T> {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (task) => {
    if (running >= width) {
      if (waiting.length >= MEMORY_STORE_LIMITS.queue) throw new AppError('memory_busy');
      // Whoever ends hands its place over, so `running` stays.
      await new Promise<void>((resolve) => waiting.push(resolve));
    } else running++;
    try {
      return await task();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}
