/** What slots are kept on: a request, or the settings that compiled components share. */
export interface SlotHolder {
  /** Made when the first slot is set: most requests set few. */
  slots: unknown[] | undefined;
}

let count = 0;

/**
 * A typed field that a feature adds to a request without the kernel knowing the feature. Declared once, at the top level
 * of the feature's module: `export const llmCall = new Slot<LlmCall>()`. Reading one that was never set gives undefined.
 */
export class Slot<T> {
  // An index and not a symbol on the holder: requests keep one shape, whatever policies they pass.
  readonly #index = count++;

  get(holder: SlotHolder): T | undefined {
    return holder.slots?.[this.#index] as T | undefined;
  }

  set(holder: SlotHolder, value: T | undefined): void {
    // Of its final size: growing it one slot at a time would allocate several times as much.
    holder.slots ??= new Array<unknown>(count);
    holder.slots[this.#index] = value;
  }

  /** The value, made by `create` when there is none. */
  ensure(holder: SlotHolder, create: () => T): T {
    const known = this.get(holder);
    if (known !== undefined) return known;
    const value = create();
    this.set(holder, value);
    return value;
  }
}
