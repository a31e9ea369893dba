/**
 * Runs tasks of one process by name, at most one of each name at a time; returns undefined for a task that was not run.
 */
export function exclusiveNames(): <T>(name: string, task: () => Promise<T>) => Promise<T | undefined> {
  const running = new Set<string>();
  return async (name, task) => {
    if (running.has(name)) return undefined;
    running.add(name);
    try {
      return await task();
    } finally {
      running.delete(name);
    }
  };
}
