import { LIMITS } from '../../../core/limits.ts';
import { type Channel, choiceOf, type HeldFrame, maskedFrames, readFrame } from './held-frame.ts';

/** Checks the texts of all channels together; returns them, changed or not, or throws. */
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
  #checked: ReadonlyMap<Channel, string> = new Map();
  /** The longest that an event waited, in ms. */
  longest = 0;

  constructor(check: CheckContents) {
    this.#check = check;
  }

  /** Throws an `AppError` (503) for an event that cannot be looked at. */
  hold(bytes: Buffer): void {
    if (this.#held.length === 0) this.#heldSince = performance.now();
    this.#held.push(readFrame(bytes));
    this.#bytes += bytes.length;
  }

  /** Whether so much is held that it should be checked now. */
  get isFull(): boolean {
    return (
      this.#bytes > LIMITS.guardrailHeldBytes ||
      Math.max(0, ...[...this.#contents().values()].map((text) => text.length)) >= LIMITS.guardrailWindow
    );
  }

  /** Checks what is held and returns what may go out: all of it at the end of the stream, else all but the overlap. */
  async release(isEnd: boolean): Promise<Buffer[]> {
    const contents = this.#contents();
    if ([...contents].some(([channel, text]) => text !== this.#checked.get(channel))) {
      const texts = [...contents.values()];
      const checked = await this.#check(texts);
      if (checked.some((text, index) => text !== texts[index])) {
        this.#replace(new Map([...contents.keys()].map((channel, index) => [channel, checked[index] ?? ''])));
      }
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

  /** The held text of each channel, in the order in which they begin. */
  #contents(): Map<Channel, string> {
    const contents = new Map<Channel, string>();
    for (const { texts } of this.#held)
      for (const [channel, text] of texts) contents.set(channel, (contents.get(channel) ?? '') + text);
    return contents;
  }

  /**
   * Takes out the events that can go while every channel keeps the overlap behind. A text never passes another part of
   * itself or the end of its choice; it may pass another text, because clients collect them apart, and a long tool call
   * after a short content would be held whole otherwise.
   */
  #takeReleasable(): HeldFrame[] {
    const room = new Map<Channel, number>();
    for (const [channel, text] of this.#contents()) room.set(channel, text.length - LIMITS.guardrailOverlap);
    const waiting = new Set<Channel>();
    const waitingChoices = new Set<number>();
    const released: HeldFrame[] = [];
    const kept: HeldFrame[] = [];
    for (const frame of this.#held) {
      const { texts, choices, isLast, isComment } = frame;
      for (const [channel, text] of texts) {
        const left = (room.get(channel) ?? 0) - text.length;
        room.set(channel, left);
        if (left < 0) waiting.add(channel);
      }
      const isHeldUp = [...texts.keys()].some((channel) => waiting.has(channel));
      const isAfterHeld =
        choices.length === 0 ? kept.length > 0 : choices.some((index) => waitingChoices.has(index));
      const waits = isHeldUp || (isLast && isAfterHeld && !isComment);
      if (waits) {
        for (const channel of texts.keys()) {
          waiting.add(channel);
          waitingChoices.add(choiceOf(channel));
        }
        for (const index of choices) if (isLast) waitingChoices.add(index);
      }
      (waits ? kept : released).push(frame);
    }
    this.#held = kept;
    return released;
  }

  /** Puts masked texts in: each channel's in place of its first event, none into its others. */
  #replace(masked: ReadonlyMap<Channel, string>): void {
    const placed = new Set<Channel>();
    this.#held = this.#held.flatMap((frame) => {
      const fresh = [...frame.texts.keys()].filter((channel) => !placed.has(channel));
      for (const channel of fresh) placed.add(channel);
      return maskedFrames(frame, new Map(fresh.map((channel) => [channel, masked.get(channel) ?? ''])));
    });
  }
}
