import { LIMITS } from '../../../core/limits.ts';
import { JSON_START, type JsonPlace, placeAfter } from '../../guardrails/json-text.ts';
import { failed, type GuardedText } from './guarded-text.ts';
import { commonPrefix, distributed } from './streams/distributed.ts';
import { type Change, changedFrame, type EventFrame, readFrame } from './streams/event-frame.ts';
import { RepeatedTexts } from './streams/repeated-texts.ts';
import { ALL, type EventText, type StreamFormat } from './streams/stream-format.ts';

/** Checks texts together. Returns them, masked or not; throws if a guardrail rejects or fails. */
export type CheckTexts = (texts: readonly GuardedText[]) => Promise<readonly string[]>;

/**
 * Holds back the events of a stream until guardrails have checked their text. Released text was checked together with
 * at least `LIMITS.guardrailOverlap` characters after it, unless it ended before, so that a secret split over events is
 * detected.
 */
export class StreamGuard {
  readonly #format: StreamFormat;
  readonly #check: CheckTexts;
  readonly #repeated: RepeatedTexts | undefined;
  #held: HeldEvent[] = [];
  #bytes = 0;
  /** Characters of the held texts. */
  #characters = 0;
  #heldSince = 0;
  /** Number of events, which names channels of whole texts. */
  #count = 0;
  /** Channels with text in several events that was changed. */
  readonly #masked = new Set<string>();
  /** The last character sent of each channel, as it was received. */
  readonly #before = new Map<string, string>();
  /** Where the JSON text of each channel of arguments continues. */
  readonly #json = new Map<string, JsonPlace>();
  /** Number of removed events. */
  #removed = 0;
  /** The longest time an event was held, in ms. */
  longest = 0;

  constructor(format: StreamFormat, check: CheckTexts) {
    this.#format = format;
    this.#check = check;
    this.#repeated = format.repeatsTexts ? new RepeatedTexts() : undefined;
  }

  /** Adds an event. Throws an `AppError` (503) if it is nested too deeply to check, or too much is held. */
  hold(bytes: Buffer): void {
    if (this.#held.length === 0) this.#heldSince = performance.now();
    const frame = readFrame(bytes, this.#format);
    this.#count += 1;
    const texts = frame.content.texts.map((text, index) => this.#heldText(text, `${this.#count}.${index}`));
    this.#held.push({ frame, texts });
    this.#bytes += bytes.length;
    this.#characters += charactersOf(texts);
    if (this.#bytes > LIMITS.guardrailHeldMax)
      throw failed('response', 'too many events wait for the end of a text that came before them');
    if (this.#before.size > MAX_CHANNELS) throw failed('response', 'the stream has too many texts');
  }

  #heldText(text: EventText, name: string): HeldText {
    const repeated = text.channel === undefined ? this.#repeated?.channelOf(text.text) : undefined;
    if (repeated !== undefined) return { ...text, channel: repeated, isRepeated: true, now: text.text };
    const channel = text.channel ?? name;
    this.#repeated?.add(channel, text.text);
    return { ...text, channel, isWhole: text.channel === undefined, isRepeated: false, now: text.text };
  }

  /** Whether so much is held that a check would release a good part of it. */
  get isFull(): boolean {
    if (this.#bytes > LIMITS.guardrailHeldBytes) return true;
    const enough = LIMITS.guardrailWindow - LIMITS.guardrailOverlap;
    if (this.#characters < enough) return false;
    let releasable = 0;
    for (const { text, hasEnded } of this.#channels().values())
      releasable += hasEnded ? text.length : Math.max(0, text.length - LIMITS.guardrailOverlap);
    return releasable >= enough;
  }

  /**
   * Checks the held events and returns those that may be sent: all at the end of the stream, otherwise all but the
   * overlap.
   */
  async release(isEnd: boolean): Promise<Buffer[]> {
    const channels = this.#channels();
    const released = isEnd ? new Set(this.#held) : this.#releasable(channels);
    await this.#mask(channels, released);
    const sent = [...released].flatMap((event) => this.#written(event) ?? []);
    this.#held = this.#held.filter((event) => !released.has(event));
    this.#bytes = this.#held.reduce((sum, { frame }) => sum + frame.bytes.length, 0);
    this.#characters = this.#held.reduce((sum, { texts }) => sum + charactersOf(texts), 0);
    if (released.size > 0) {
      this.longest = Math.max(this.longest, performance.now() - this.#heldSince);
      this.#heldSince = performance.now();
    }
    return sent;
  }

  /** The held text of each channel, in order of first appearance. */
  #channels(): Map<string, HeldChannel> {
    const channels = new Map<string, HeldChannel>();
    // By each name that ends them: a search through all channels for each event would take as long as the square of their number.
    const open = new Map<string, string[]>();
    const end = (name: string): void => {
      for (const channel of open.get(name) ?? []) {
        const held = channels.get(channel);
        if (held !== undefined) channels.set(channel, { ...held, hasEnded: true });
      }
      open.delete(name);
    };
    for (const { frame, texts } of this.#held) {
      for (const { channel, part, path, now, isPlain, isWhole = false, isRepeated } of texts) {
        if (isRepeated) continue;
        const before = channels.get(channel);
        const isArguments = isWhole ? path.at(-1) === 'arguments' : isPlain !== true;
        const json = part === 'toolCalls' && isArguments;
        channels.set(channel, { part, json, text: (before?.text ?? '') + now, hasEnded: isWhole });
        if (isWhole || before?.hasEnded === false) continue;
        for (const name of endingNames(channel)) {
          const others = open.get(name);
          if (others === undefined) open.set(name, [channel]);
          else others.push(channel);
        }
      }
      for (const name of frame.content.ends ?? []) end(name);
    }
    return channels;
  }

  /** The events that can be sent, in order, while the overlap of every unfinished channel stays held. */
  #releasable(channels: ReadonlyMap<string, HeldChannel>): Set<HeldEvent> {
    const room = new Map<string, number>();
    for (const [channel, { text, hasEnded }] of channels)
      room.set(channel, hasEnded ? text.length : text.length - LIMITS.guardrailOverlap);
    const waiting = new Set<string>();
    const released = new Set<HeldEvent>();
    for (const event of this.#held) {
      const { lanes, follows } = event.frame.content;
      for (const { channel, now, isRepeated } of event.texts)
        if (!isRepeated) room.set(channel, (room.get(channel) ?? 0) - now.length);
      const isOverlap = event.texts.some(
        ({ channel, isRepeated }) => !isRepeated && (room.get(channel) ?? 0) < 0,
      );
      if (isOverlap || follows.some((lane) => waiting.has(lane))) for (const lane of lanes) waiting.add(lane);
      else released.add(event);
    }
    return released;
  }

  /** Checks the texts of which something is about to be sent, and changes the held events. */
  async #mask(channels: ReadonlyMap<string, HeldChannel>, released: ReadonlySet<HeldEvent>): Promise<void> {
    const sizes = new Map<string, number>();
    for (const { texts } of released)
      for (const { channel, now, isRepeated } of texts)
        if (!isRepeated) sizes.set(channel, (sizes.get(channel) ?? 0) + now.length);
    const checks = [...sizes].flatMap(([channel, decided]) => {
      const held = channels.get(channel);
      if (held === undefined) return [];
      const { part, json, text, hasEnded } = held;
      return { channel, part, json, text, decided: hasEnded ? text.length : decided };
    });
    if (checks.length === 0) return;
    const results = await this.#check(
      checks.map(({ channel, part, json, text, decided }) => ({
        role: 'assistant',
        content: text,
        part,
        before: this.#before.get(channel) ?? '',
        ...(json && { json: this.#json.get(channel) ?? JSON_START }),
        ...(decided < text.length && { decided }),
      })),
    );
    for (const [index, { channel, text, decided }] of checks.entries()) {
      const masked = results[index] ?? '';
      // A change of the overlap only is left to the next check: what is found there may be longer.
      if (masked !== text && (decided === text.length || commonPrefix(text, masked) < decided))
        this.#replace(channel, masked);
    }
  }

  #replace(channel: string, masked: string): void {
    const slots = this.#held.flatMap(({ texts }) =>
      texts.filter((text) => text.channel === channel && !text.isRepeated),
    );
    // No event describes a text that another event has as a whole.
    if (slots[0]?.isWhole !== true) this.#masked.add(channel);
    const parts = distributed(
      slots.map(({ now }) => now),
      masked,
    );
    for (const [index, slot] of slots.entries()) slot.now = parts[index] ?? '';
  }

  /** The bytes of an event with its texts as they are now; undefined if it must be removed. */
  #written({ frame, texts }: HeldEvent): Buffer | undefined {
    const changes: Change[] = [];
    for (const text of texts) {
      if (text.isRepeated) text.now = this.#repeated?.sent(text.channel) ?? '';
      else this.#repeated?.send(text.channel, text.now);
      const { path, now, derived = [] } = text;
      if (!text.isWhole && !text.isRepeated) {
        this.#before.set(text.channel, text.text.slice(-1));
        if (text.part === 'toolCalls')
          this.#json.set(text.channel, placeAfter(this.#json.get(text.channel) ?? JSON_START, text.text));
      }
      if (now === text.text) continue;
      changes.push({ path, json: path.length === 0 ? now : JSON.stringify(now) }, ...derived);
    }
    const { describes } = frame.content;
    if (describes !== undefined && this.#masked.has(describes)) {
      this.#removed += 1;
      return undefined;
    }
    const renumbered =
      this.#removed === 0 || frame.value === undefined
        ? undefined
        : this.#format.renumbered?.(frame.value, this.#removed);
    return changedFrame(frame, renumbered === undefined ? changes : [...changes, renumbered]);
  }
}

/** Words of the longest name that ends channels (4), and some of ids. What follows is a path of the provider, with any number of spaces. */
const GROUP_WORDS = 8;

/** The names that end a channel: `ALL`, its own, and those of the groups that it belongs to, such as `0` and `0 arguments`. */
function endingNames(channel: string): string[] {
  const names = [ALL, channel];
  let at = channel.indexOf(' ');
  for (let words = 0; at !== -1 && words < GROUP_WORDS; words += 1) {
    names.push(channel.slice(0, at));
    at = channel.indexOf(' ', at + 1);
  }
  return names;
}

/** Texts of one stream, each of which needs some memory. A model with 128 choices and 16 calls of tools each has half. */
const MAX_CHANNELS = 4_096;

/** An event of a stream, held back for guardrails. */
interface HeldEvent {
  readonly frame: EventFrame;
  readonly texts: readonly HeldText[];
}

interface HeldText extends EventText {
  readonly channel: string;
  /** The event has the whole text of its channel. */
  readonly isWhole?: boolean;
  /** It repeats the text of a channel whose events came before. */
  readonly isRepeated: boolean;
  /** The text after the last check. */
  now: string;
}

interface HeldChannel {
  readonly part: EventText['part'];
  /** Whether the text is JSON. */
  readonly json: boolean;
  readonly text: string;
  /** No event can continue the text. */
  readonly hasEnded: boolean;
}

function charactersOf(texts: readonly HeldText[]): number {
  return texts.reduce((sum, { now, isRepeated }) => (isRepeated ? sum : sum + now.length), 0);
}
