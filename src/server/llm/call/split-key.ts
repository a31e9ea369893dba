import { REDACTED } from '../../../core/credentials.ts';
import { AppError } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { BodyFilter } from '../../transport/upstream/upstream-body.ts';
import type { Change, EventTexts } from '../formats/event-texts.ts';
import { distributed } from '../guardrails/streams/distributed.ts';
import { changedFrame, type EventFrame, readFrame } from '../guardrails/streams/event-frame.ts';
import type { TextPath } from '../texts.ts';

// Redacts a provider's key that arrives in pieces, split over chunks of a body or over the texts of several events.

/** The length of the longest end of a text that a key may continue. */
function begunLength(text: string, forms: readonly string[]): number {
  let longest = 0;
  for (const form of forms)
    for (let length = Math.min(form.length - 1, text.length); length > longest; length -= 1)
      if (text.endsWith(form.slice(0, length))) longest = length;
  return longest;
}

/**
 * Redacts a key in a body of any size as it passes. Holds back only bytes that a key begins with. The length stays the same, because
 * its header was received before.
 */
export class KeyFilter implements BodyFilter {
  readonly #forms: readonly string[];
  readonly #longest: number;
  #begun: Buffer = Buffer.alloc(0);

  constructor(forms: readonly string[]) {
    this.#forms = forms;
    this.#longest = Math.max(0, ...forms.map(({ length }) => length));
  }

  push(chunk: Buffer): Buffer {
    let bytes = this.#begun.length === 0 ? chunk : Buffer.concat([this.#begun, chunk]);
    for (const form of this.#forms)
      if (bytes.includes(form, 0, 'latin1')) {
        const redacted = REDACTED.padEnd(form.length, '*').slice(0, form.length);
        bytes = Buffer.from(bytes.toString('latin1').replaceAll(form, redacted), 'latin1');
      }
    const end = bytes.toString('latin1', Math.max(0, bytes.length - this.#longest));
    const sent = bytes.length - begunLength(end, this.#forms);
    this.#begun = bytes.subarray(sent);
    return bytes.subarray(0, sent);
  }

  end(): Buffer {
    return this.#begun;
  }
}

/**
 * Redacts a key that the texts of several events have together. An event is held back only if its text ends with so much of the key as
 * no other text has: what was sent before is not worth hiding, such as `sk-proj-`. Streams without a key are not delayed.
 */
export class SplitKey {
  readonly #format: EventTexts;
  readonly #forms: readonly string[];
  /** Finds events with a text that a key may continue, and a few others. Nearly all events are only searched. */
  readonly #mayBegin: RegExp;
  /** How much of the key makes an event wait. */
  readonly #enough: number;
  readonly #begun = new Map<string, Begun>();
  #held: HeldEvent[] = [];
  #bytes = 0;

  /** `forms`: encodings of the key that no other text has. */
  constructor(format: EventTexts, forms: readonly string[]) {
    this.#format = format;
    this.#forms = forms;
    this.#mayBegin = new RegExp(forms.flatMap(beginnings).join('|'));
    this.#enough = Math.min(MOST_SENT, ...forms.map(({ length }) => Math.ceil(length / 4)));
  }

  /** Takes an event; returns those to send now. */
  push(bytes: Buffer): Buffer[] {
    if (this.#begun.size === 0 && !this.#mayBegin.test(bytes.toString('latin1'))) return [bytes];
    const frame = this.#read(bytes);
    const event: HeldEvent = { bytes, frame, texts: [] };
    this.#held.push(event);
    this.#bytes += bytes.length;
    for (const { channel, path, text, form, derived = [] } of frame?.content.texts ?? []) {
      if (channel === undefined || form === 'derived') continue;
      const begun = this.#begun.get(channel) ?? { sent: '', texts: [], length: 0 };
      const piece = { path, text, now: text, derived };
      event.texts.push(piece);
      begun.texts.push(piece);
      this.#begun.set(channel, begun);
      this.#redact(begun);
    }
    if (![...this.#begun.values()].some(({ length }) => length >= this.#enough)) return this.#release();
    return this.#held.length > MOST_HELD || this.#bytes > LIMITS.guardrailHeldMax ? this.end() : [];
  }

  /** Returns the events that are held, at the end of the stream: the beginning of a key is redacted, too. */
  end(): Buffer[] {
    for (const begun of this.#begun.values()) {
      const text = textOf(begun);
      if (begun.length >= this.#enough) change(begun, text.slice(0, -begun.length) + REDACTED);
      begun.length = 0;
    }
    return this.#release();
  }

  #read(bytes: Buffer): EventFrame | undefined {
    try {
      return readFrame(bytes, this.#format);
    } catch (error) {
      // Nested too deeply, or not UTF-8.
      if (error instanceof AppError) return undefined;
      throw error;
    }
  }

  #redact(begun: Begun): void {
    const text = textOf(begun);
    const cleaned = this.#forms.reduce((current, form) => current.replaceAll(form, REDACTED), text);
    if (cleaned !== text) change(begun, cleaned);
    begun.length = begunLength(cleaned, this.#forms);
  }

  #release(): Buffer[] {
    const sent = this.#held.map(({ bytes, frame, texts }) => {
      const changed = texts.filter(({ text, now }) => text !== now);
      if (frame === undefined || changed.length === 0) return bytes;
      return changedFrame(frame, changed.flatMap(changesOf));
    });
    this.#held = [];
    this.#bytes = 0;
    for (const [channel, begun] of this.#begun) {
      const text = textOf(begun);
      if (begun.length === 0 || this.#begun.size > MOST_CHANNELS) this.#begun.delete(channel);
      else this.#begun.set(channel, { ...begun, sent: text.slice(text.length - begun.length), texts: [] });
    }
    return sent;
  }
}

/** A text whose end may be the beginning of the key. */
interface Begun {
  /** What of the key was sent already. */
  readonly sent: string;
  /** Its pieces in the events that are held. */
  readonly texts: Piece[];
  /** How many characters of the key it ends with. */
  length: number;
}

/** The text of an event, as it was received and as it will be sent. */
interface Piece {
  readonly path: TextPath;
  readonly text: string;
  now: string;
  readonly derived: readonly Change[];
}

interface HeldEvent {
  readonly bytes: Buffer;
  readonly frame: EventFrame | undefined;
  readonly texts: Piece[];
}

const textOf = ({ sent, texts }: Begun): string => sent + texts.map(({ now }) => now).join('');

const changesOf = ({ path, now, derived }: Piece): readonly Change[] => [
  { path, json: JSON.stringify(now) },
  ...derived,
];

/** Writes a changed text into the events that are held; what was sent of the key stays sent. */
function change({ sent, texts }: Begun, after: string): void {
  const parts = distributed(
    texts.map(({ now }) => now),
    after.startsWith(sent) ? after.slice(sent.length) : after,
  );
  for (const [index, piece] of texts.entries()) piece.now = parts[index] ?? '';
}

/** What an event has whose text ends with the beginning of a key: four of its characters, or fewer in front of the closing quote. */
function beginnings(form: string): string[] {
  const [one = '', two = '', three = '', four = ''] = [1, 2, 3, 4].map((length) =>
    JSON.stringify(form.slice(0, length))
      .slice(1, -1)
      .replace(/[.*+?^${}()|[\]\\/-]/g, String.raw`\$&`),
  );
  // A name of a member ends with a letter, too.
  return [four, `${three}"`, `${two}"`, String.raw`${one}"(?!\s*:)`];
}

/** Characters of a key, at most a quarter of it, that may be sent: more than what all keys of a provider begin with. */
const MOST_SENT = 16;
/** Events: each of them has at least one character of the key, or is of another text. */
const MOST_HELD = 1_024;
/** Texts that end with the beginning of a key at the same time, such as those of choices. */
const MOST_CHANNELS = 256;
