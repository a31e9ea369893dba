import { MEMORY_STORE_LIMITS } from '../../core/memory-limits.ts';
import { DEFAULT_NAMESPACE } from '../namespace.ts';
import { createMemory, type Memory, type MemoryOptions } from './memory.ts';
import type { NamespacedStore } from './store.ts';

/** The memories of all namespaces. */
export interface Memories {
  readonly store: NamespacedStore;
  /** The memory of `default`, with the docs folder. */
  readonly default: Memory;
  /** Runs a task on the memory of a namespace, which meanwhile is neither dropped nor deleted. */
  use<T>(namespace: string, task: (memory: Memory) => Promise<T>): Promise<T>;
  /**
   * Deletes a namespace other than `default`, after the tasks that use it; tasks that arrive meanwhile wait and find it
   * empty. False if there is none.
   */
  remove(namespace: string): Promise<boolean>;
  /** Runs the first sync of the docs folder. Does not reject. */
  start(): Promise<void>;
  /** Stops syncs and indexing, completes calls in progress, and closes the store and the embedder. */
  close(): Promise<void>;
}

export interface MemoriesOptions extends Omit<MemoryOptions, 'store' | 'namespace'> {
  readonly store: NamespacedStore;
}

/** Creates the memories of a store; each namespace's on its first use. */
export function createMemories(options: MemoriesOptions): Memories {
  return new OpenMemories(options);
}

interface Space {
  readonly memory: Memory;
  users: number;
  /** Called when the last user has ended. */
  unused: () => void;
}

class OpenMemories implements Memories {
  readonly store: NamespacedStore;
  readonly default: Memory;
  readonly #options: MemoriesOptions;
  /** The least recently used first. */
  readonly #spaces = new Map<string, Space>();
  readonly #removals = new Map<string, Promise<boolean>>();

  constructor(options: MemoriesOptions) {
    this.#options = options;
    this.store = options.store;
    this.default = createMemory(options);
  }

  async use<T>(namespace: string, task: (memory: Memory) => Promise<T>): Promise<T> {
    if (namespace === DEFAULT_NAMESPACE) return task(this.default);
    for (let removal = this.#removals.get(namespace); removal; removal = this.#removals.get(namespace))
      await removal.catch(() => undefined);
    const space = this.#spaces.get(namespace) ?? this.#begin(namespace);
    // The most recently used one is the last.
    this.#spaces.delete(namespace);
    this.#spaces.set(namespace, space);
    space.users += 1;
    try {
      return await task(space.memory);
    } finally {
      space.users -= 1;
      if (space.users === 0) space.unused();
      this.#dropIdle();
    }
  }

  /** Texts of another embedder are embedded again when their namespace is first used. */
  #begin(namespace: string): Space {
    const store = this.store.namespace(namespace);
    const memory = createMemory({ ...this.#options, namespace, store, docsFolder: undefined });
    void memory.start();
    return { memory, users: 0, unused: () => undefined };
  }

  #dropIdle(): void {
    for (const [namespace, { memory, users }] of this.#spaces) {
      if (this.#spaces.size <= MEMORY_STORE_LIMITS.activeNamespaces) return;
      if (users > 0 || !memory.isIdle) continue;
      this.#spaces.delete(namespace);
      void memory.stop();
    }
  }

  remove(namespace: string): Promise<boolean> {
    let removal = this.#removals.get(namespace);
    if (removal === undefined) {
      removal = this.#remove(namespace).finally(() => this.#removals.delete(namespace));
      this.#removals.set(namespace, removal);
    }
    return removal;
  }

  async #remove(namespace: string): Promise<boolean> {
    const space = this.#spaces.get(namespace);
    if (space !== undefined) {
      const unused = new Promise<void>((resolve) => {
        space.unused = resolve;
      });
      // First the tasks in the background, which a user may be waiting for; then those that users have started since.
      await space.memory.stop();
      if (space.users > 0) await unused;
      await space.memory.stop();
      this.#spaces.delete(namespace);
    }
    return this.store.removeNamespace(namespace);
  }

  async start(): Promise<void> {
    await this.default.start();
  }

  async close(): Promise<void> {
    await Promise.all(
      [this.default, ...[...this.#spaces.values()].map(({ memory }) => memory)].map((one) => one.stop()),
    );
    await Promise.allSettled(this.#removals.values());
    await this.#options.embedder.close();
    await this.#options.extractor?.close();
    await this.store.close();
  }
}
