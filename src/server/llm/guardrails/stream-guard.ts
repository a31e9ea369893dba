import { LIMITS } from '../../../core/limits.ts';
import { type Channel, choiceOf, type HeldFrame, maskedFrames, readFrame } from './held-frame.ts';

/** Checks the texts of all channels together. Returns them, masked or not; throws if a guardrail rejects or fails. */
export type CheckContents = (contents: readonly string[]) => Promise<readonly string[]>;

/**
 * Holds back the events of a stream until guardrails have checked their text. Released text was checked together with
 * at least `LIMITS.guardrailOverlap` characters after it, so that a secret split over events is detected.
 */
export class StreamGuard {
  readonly #check: CheckContents;
  #held: HeldFrame[] = [];
  #bytes = 0;
  #heldSince = 0;
  /** The held texts after the last check. Unchanged texts are not checked again. */
  #checked: ReadonlyMap<Channel, string> = new Map();
  /** The longest time an event was held, in ms. */
  longest = 0;

  constructor(check: CheckContents) {
    this.#check = check;
  }

  /** Adds an event. Throws an `AppError` (503) if it is nested too deeply to check. */
  hold(bytes: Buffer): void {
    if (this.#held.length === 0) this.#heldSince = performance.now();
    this.#held.push(readFrame(bytes));
    this.#bytes += bytes.length;
  }

  /** Whether the held bytes or texts reached the limit at which they must be checked. */
  get isFull(): boolean {
    return (
      this.#bytes > LIMITS.guardrailHeldBytes ||
      Math.max(0, ...[...this.#contents().values()].map((text) => text.length)) >= LIMITS.guardrailWindow
    );
  }

  /**
   * Checks the held events and returns those that may be sent: all at the end of the stream, otherwise all but the
   * overlap.
   */
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

  /** The held text of each channel, in order of first appearance. */
  #contents(): Map<Channel, string> {
    const contents = new Map<Channel, string>();
    for (const { texts } of this.#held)
      for (const [channel, text] of texts) contents.set(channel, (contents.get(channel) ?? '') + text);
    return contents;
  }

  /**
   * Removes and returns the events that can be sent while the overlap of every channel stays held. Events of one
   * channel and the end of its choice keep their order. Different channels may overtake each other, because clients
   * assemble them separately; otherwise a long tool call after a short content would be held completely.
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
      const isBlocked = [...texts.keys()].some((channel) => waiting.has(channel));
      const isAfterHeld =
        choices.length === 0 ? kept.length > 0 : choices.some((index) => waitingChoices.has(index));
      const waits = isBlocked || (isLast && isAfterHeld && !isComment);
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

  /** Inserts masked texts: each channel's text replaces its first event; its other events become empty. */
  #replace(masked: ReadonlyMap<Channel, string>): void {
    const placed = new Set<Channel>();
    this.#held = this.#held.flatMap((frame) => {
      const fresh = [...frame.texts.keys()].filter((channel) => !placed.has(channel));
      for (const channel of fresh) placed.add(channel);
      return maskedFrames(frame, new Map(fresh.map((channel) => [channel, masked.get(channel) ?? ''])));
    });
  }
}
