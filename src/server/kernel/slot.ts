/** An object with slots: a request, or the settings that compiled components share. */
export interface SlotHolder {
  /** Allocated when the first slot is set. */
  slots: unknown[] | undefined;
}

let count = 0;

/**
 * A typed field that a feature adds to a request, so that the kernel does not depend on the feature. Declared once, at
 * the top level of the feature's module: `export const llmCall = new Slot<LlmCall>()`. Undefined until it is set.
 */
export class Slot<T> {
  // An index instead of a symbol property: all requests keep the same hidden class in V8.
  readonly #index = count++;

  get(holder: SlotHolder): T | undefined {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only `set` of the same slot writes it.
    return holder.slots?.[this.#index] as T | undefined;
  }

  set(holder: SlotHolder, value: T | undefined): void {
    // Allocated with its final size: growing it slot by slot would allocate several times as much.
    holder.slots ??= new Array<unknown>(count);
    holder.slots[this.#index] = value;
  }

  /** Returns the value, after setting it to `create()` if it is undefined. */
  ensure(holder: SlotHolder, create: () => T): T {
    const known = this.get(holder);
    if (known !== undefined) return known;
    const value = create();
    this.set(holder, value);
    return value;
  }
}
