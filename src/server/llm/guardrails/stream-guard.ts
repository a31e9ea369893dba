import { LIMITS } from '../../../core/limits.ts';
import { dataOf } from '../frames.ts';

/** Checks the texts of all choices together; returns them, changed or not, or throws. */
export type CheckContents = (contents: readonly string[]) => Promise<readonly string[]>;

type Json = Record<string, unknown>;

interface HeldFrame {
  bytes: Buffer;
  /** The event's JSON, when it holds text of a choice. */
  readonly value: Json | undefined;
  readonly texts: ReadonlyMap<number, string>;
}

/**
 * Holds the events of a stream back until guardrails have seen their text. What is released was seen together with
 * at least `LIMITS.guardrailOverlap` characters after it, so that no secret passes because it was split over events.
 */
export class StreamGuard {
  readonly #check: CheckContents;
  #held: HeldFrame[] = [];
  #bytes = 0;
  #heldSince = 0;
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
    if (contents.some((text) => text !== '')) {
      const checked = await this.#check(contents);
      if (checked.some((text, index) => text !== contents[index])) this.#replace(checked);
    }
    const count = isEnd ? this.#held.length : this.#releasable();
    const released = this.#held.splice(0, count).map(({ bytes }) => bytes);
    this.#bytes = this.#held.reduce((sum, { bytes }) => sum + bytes.length, 0);
    if (released.length > 0) {
      this.longest = Math.max(this.longest, performance.now() - this.#heldSince);
      this.#heldSince = performance.now();
    }
    return released;
  }

  /** The held text of each choice. */
  #contents(): string[] {
    const contents: string[] = [];
    for (const { texts } of this.#held)
      for (const [index, text] of texts) contents[index] = (contents[index] ?? '') + text;
    return Array.from(contents, (text) => text ?? '');
  }

  /** How many events can go while every choice keeps the overlap behind. */
  #releasable(): number {
    const room = this.#contents().map((text) => text.length - LIMITS.guardrailOverlap);
    let count = 0;
    for (const { texts } of this.#held) {
      for (const [index, text] of texts) room[index] = (room[index] ?? 0) - text.length;
      if (room.some((left, index) => left < 0 && (texts.has(index) || count > 0 || left < 0))) break;
      count += 1;
    }
    return count;
  }

  /** Puts masked texts in: each choice's into small events in place of its first one, none into its others. */
  #replace(masked: readonly string[]): void {
    const placed = new Set<number>();
    this.#held = this.#held.flatMap((frame) => {
      const { value, texts } = frame;
      if (value === undefined) return [frame];
      const fresh = [...texts.keys()].filter((index) => !placed.has(index));
      for (const index of fresh) placed.add(index);
      const pieces = fresh.flatMap((index) =>
        cut(masked[index] ?? '').map((text) => textFrame(value, index, text)),
      );
      const isBare = [...texts.keys()].every((index) => isOnlyText(value, index));
      return isBare ? pieces : [...pieces, withoutText(value)];
    });
  }
}

/** Small enough that the overlap can be kept to within a piece. */
function cut(text: string): string[] {
  return text.match(/[\s\S]{1,64}/gu) ?? [];
}

function readFrame(bytes: Buffer): HeldFrame {
  const none: HeldFrame = { bytes, value: undefined, texts: new Map() };
  const data = dataOf(bytes);
  if (data === undefined || data === '[DONE]') return none;
  let value: Json;
  try {
    value = JSON.parse(data) as Json;
  } catch {
    return none;
  }
  const texts = new Map<number, string>();
  for (const [position, choice] of choicesOf(value).entries()) {
    const text = choiceText(choice);
    if (text !== undefined && text !== '') texts.set(indexOf(choice, position), text);
  }
  return texts.size === 0 ? none : { bytes, value, texts };
}

const choicesOf = (value: Json): Json[] =>
  Array.isArray(value['choices']) ? (value['choices'] as Json[]) : [];

function indexOf(choice: Json, position: number): number {
  const { index } = choice;
  return typeof index === 'number' && Number.isInteger(index) && index >= 0 && index < MAX_CHOICES
    ? index
    : position;
}

// More choices than any provider offers; a number from outside must not size an array.
const MAX_CHOICES = 128;

function choiceText(choice: Json): string | undefined {
  if (typeof choice['text'] === 'string') return choice['text'];
  const { content } = (choice['delta'] ?? {}) as Json;
  return typeof content === 'string' ? content : undefined;
}

function frameOf(value: Json, texts: ReadonlyMap<number, string>): HeldFrame {
  return { bytes: Buffer.from(`data: ${JSON.stringify(value)}\n\n`), value, texts };
}

/** An event with this text of one choice and nothing else of it. */
function textFrame(value: Json, index: number, text: string): HeldFrame {
  const choice = choicesOf(value).find((candidate, position) => indexOf(candidate, position) === index) ?? {};
  const delta = (choice['delta'] ?? {}) as Json;
  const said =
    typeof choice['text'] === 'string'
      ? { text }
      : { delta: { ...(delta['role'] === undefined ? {} : { role: delta['role'] }), content: text } };
  return frameOf({ ...value, choices: [{ index, ...said, finish_reason: null }] }, new Map([[index, text]]));
}

/** Whether a choice's part of an event is nothing but text. */
function isOnlyText(value: Json, index: number): boolean {
  const choice = choicesOf(value).find((candidate, position) => indexOf(candidate, position) === index);
  if (choice === undefined || (choice['finish_reason'] ?? null) !== null) return false;
  return Object.keys((choice['delta'] ?? {}) as Json).every((key) => key === 'content' || key === 'role');
}

/** The event with everything that is no text: tool calls, the reason of the end. */
function withoutText(value: Json): HeldFrame {
  const choices = choicesOf(value).map((choice) => {
    if (typeof choice['text'] === 'string') return { ...choice, text: '' };
    const { content: _content, ...delta } = (choice['delta'] ?? {}) as Json;
    return { ...choice, delta };
  });
  return frameOf({ ...value, choices }, new Map());
}
