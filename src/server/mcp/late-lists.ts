import { LIMITS } from '../../core/limits.ts';
import { timeoutMessage, withTimeout } from './timeouts.ts';

interface LateList {
  /** Its answer is still being waited for. */
  isAsked: boolean;
  /** What came after all, for the next who asks. */
  come?: { readonly items: unknown; readonly at: number };
}

/**
 * Lists that one target did not give in time, by method: nobody waits for such a list again until it has come. Only one
 * question of each method is open then, whoever asks; its answer is kept for the next who does.
 */
export class LateLists {
  readonly #late = new Map<string, LateList>();

  /** The outcome of `ask`, in time; `onCome` runs when a list that was late has come. */
  inTime<Items>(method: string, ask: () => Promise<Items>, onCome: () => void): Promise<Items> {
    const late = this.#late.get(method);
    if (late === undefined || this.#isOver(late)) {
      this.#late.delete(method);
      const asked = ask();
      return withTimeout(asked, () => this.#follow(method, asked, onCome));
    }
    if (late.come !== undefined) {
      this.#late.delete(method);
      return Promise.resolve(late.come.items as Items);
    }
    if (!late.isAsked) this.#follow(method, ask(), onCome);
    return Promise.reject(new Error(timeoutMessage(LIMITS.slowTarget)));
  }

  /** The target says that its lists are not what they were. */
  changed(): void {
    for (const [method, { come }] of this.#late) if (come !== undefined) this.#late.delete(method);
  }

  #isOver({ come }: LateList): boolean {
    return come !== undefined && performance.now() - come.at > LIMITS.listAnswer;
  }

  #follow(method: string, asked: Promise<unknown>, onCome: () => void): void {
    const late: LateList = { isAsked: true };
    this.#late.set(method, late);
    asked.then(
      (items) => {
        // First: it is a change of the lists, too.
        onCome();
        late.come = { items, at: performance.now() };
      },
      () => {
        late.isAsked = false;
      },
    );
  }
}
