import { LIMITS } from '../../../core/limits.ts';
import { type HeldFrame, maskedFrames, readFrame } from './held-frame.ts';

/** Checks the texts of all choices together; returns them, changed or not, or throws. */
export type CheckContents = (contents: readonly string[]) => Promise<readonly string[]>;

/**
 * Holds the events of a stream back until guardrails have seen their text. What is released was seen together with
 * at least `LIMITS.guardrailOverlap` characters after it, so that no secret passes because it was split over events.
 */
export class StreamGuard {
  readonly #check: CheckContents;
  #held: HeldFrame[] = [];
  #bytes = 0;
  #heldSince = 0;
  /** What was checked last, as it stood afterwards: asking again about the same text tells nothing new. */
  #checked: readonly string[] = [];
  /** The longest that an event waited, in ms. */
  longest = 0;

  constructor(check: CheckContents) {
    this.#check = check;
  }

  hold(bytes: Buffer): void {
    if (this.#held.length === 0) this.#heldSince = performance.now();
    this.#held.push(readFrame(bytes));
    this.#bytes += bytes.length;
  }

  /** Whether so much is held that it should be checked now. */
  get isFull(): boolean {
    return (
      this.#bytes > LIMITS.guardrailHeldBytes ||
      Math.max(0, ...this.#contents().map((text) => text.length)) >= LIMITS.guardrailWindow
    );
  }

  /** Checks what is held and returns what may go out: all of it at the end of the stream, else all but the overlap. */
  async release(isEnd: boolean): Promise<Buffer[]> {
    const contents = this.#contents();
    if (contents.some((text, index) => text !== '' && text !== this.#checked[index])) {
      const checked = await this.#check(contents);
      if (checked.some((text, index) => text !== contents[index])) this.#replace(checked);
    }
    const released = isEnd ? this.#held.splice(0) : this.#takeReleasable();
    this.#checked = this.#contents();
    this.#bytes = this.#held.reduce((sum, { bytes }) => sum + bytes.length, 0);
    if (released.length > 0) {
      this.longest = Math.max(this.longest, performance.now() - this.#heldSince);
      this.#heldSince = performance.now();
    }
    return released.map(({ bytes }) => bytes);
  }

  /** The held text of each choice. */
  #contents(): string[] {
    const contents: string[] = [];
    for (const { texts } of this.#held)
      for (const [index, text] of texts) contents[index] = (contents[index] ?? '') + text;
    return Array.from(contents, (text) => text ?? '');
  }

  /**
   * Takes out the events that can go while every choice keeps the overlap behind. A choice's text never passes its own
   * end or another part of its text; tool calls may pass held text, because clients collect the two apart, and a long
   * call after a short text would be held whole otherwise.
   */
  #takeReleasable(): HeldFrame[] {
    const room = this.#contents().map((text) => text.length - LIMITS.guardrailOverlap);
    const waiting = new Set<number>();
    const released: HeldFrame[] = [];
    const kept: HeldFrame[] = [];
    for (const frame of this.#held) {
      const { texts, choices, isLast, isComment } = frame;
      for (const [index, text] of texts) {
        room[index] = (room[index] ?? 0) - text.length;
        if ((room[index] as number) < 0) waiting.add(index);
      }
      const isAfterHeld =
        choices.length === 0 ? kept.length > 0 : choices.some((index) => waiting.has(index));
      const waits = isAfterHeld && (isLast || texts.size > 0) && !isComment;
      if (waits) for (const index of choices) waiting.add(index);
      (waits ? kept : released).push(frame);
    }
    this.#held = kept;
    return released;
  }

  /** Puts masked texts in: each choice's in place of its first event, none into its others. */
  #replace(masked: readonly string[]): void {
    const placed = new Set<number>();
    this.#held = this.#held.flatMap((frame) => {
      const fresh = [...frame.texts.keys()].filter((index) => !placed.has(index));
      for (const index of fresh) placed.add(index);
      return maskedFrames(frame, new Map(fresh.map((index) => [index, masked[index] ?? ''])));
    });
  }
}
