import { LIMITS } from '../../../core/limits.ts';
import { JSON_START, type JsonPlace, placeAfter } from '../../guardrails/json-text.ts';
import { ALL, type Change, type EventTexts } from '../formats/event-texts.ts';
import { membersOf } from '../json-members.ts';
import type { Echo } from './echo.ts';
import { type GuardedText, uncheckable } from './guarded-text.ts';
import { commonPrefix, distributed } from './streams/distributed.ts';
import type { EventText } from './streams/event-content.ts';
import { changedFrame, type EventFrame, readFrame } from './streams/event-frame.ts';
import { RepeatedTexts } from './streams/repeated-texts.ts';

/** Checks texts together. Returns them, masked or not; throws if a guardrail rejects or fails. */
export type CheckTexts = (texts: readonly GuardedText[]) => Promise<readonly string[]>;

/**
 * Holds back the events of a stream until guardrails have checked their text. Released text was checked together with
 * at least `LIMITS.guardrailOverlap` characters after it, unless it ended before, so that a secret split over events is
 * detected.
 */
export class StreamGuard {
  readonly #format: EventTexts;
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
  /** Short texts that a check has left as they are: most events repeat the same few, such as the tier of a service. */
  readonly #passed = new Set<string>();
  readonly #echo: Echo | undefined;
  /** The last character sent of each run, as it was received. */
  readonly #before = new Map<string, string>();
  /** Where the JSON text of each run of arguments continues. */
  readonly #json = new Map<string, JsonPlace>();
  /** Number of removed events. */
  #removed = 0;
  /** The longest time an event was held, in ms. */
  longest = 0;

  /** `echo`: which texts of events repeat the request. */
  constructor(format: EventTexts, check: CheckTexts, echo?: Echo) {
    this.#format = format;
    this.#check = check;
    this.#echo = echo;
    this.#repeated = format.repeatsTexts ? new RepeatedTexts() : undefined;
  }

  /** Adds an event. Throws an `AppError` (502) if it is nested too deeply to check, or too much is held. */
  hold(bytes: Buffer): void {
    if (this.#held.length === 0) this.#heldSince = performance.now();
    const frame = readFrame(bytes, this.#format, this.#echo);
    this.#count += 1;
    const texts = frame.content.texts
      .filter((text) => text.channel !== undefined || !this.#passed.has(passedKey(text)))
      .map((text, index) => this.#heldText(text, `${this.#count}.${index}`));
    this.#held.push({ frame, texts });
    this.#bytes += bytes.length;
    this.#characters += charactersOf(texts);
    if (this.#bytes > LIMITS.guardrailHeldMax)
      throw uncheckable('response', 'too many events wait for the end of a text that came before them');
    if (this.#before.size > MAX_CHANNELS) throw uncheckable('response', 'the stream has too many texts');
  }

  #heldText(text: EventText, name: string): HeldText {
    const mayRepeat = text.channel === undefined && text.part !== 'other';
    const repeated = mayRepeat ? this.#repeated?.channelOf(text.text) : undefined;
    if (repeated !== undefined)
      return { ...text, channel: repeated, run: repeated, isRepeated: true, now: text.text };
    const channel = text.channel ?? name;
    if (text.channel !== undefined || mayRepeat) this.#repeated?.add(channel, text.text);
    const isWhole = text.channel === undefined;
    return { ...text, channel, run: text.run ?? channel, isWhole, isRepeated: false, now: text.text };
  }

  /** Whether so much is held that a check would release a good part of it. */
  get isFull(): boolean {
    if (this.#bytes > LIMITS.guardrailHeldBytes) return true;
    const enough = LIMITS.guardrailWindow - LIMITS.guardrailOverlap;
    if (this.#characters < enough) return false;
    let releasable = 0;
    for (const { text, hasEnded } of this.#runs().values())
      releasable += hasEnded ? text.length : Math.max(0, text.length - LIMITS.guardrailOverlap);
    return releasable >= enough;
  }

  /**
   * Checks the held events and returns those that may be sent: all at the end of the stream, otherwise all but the
   * overlap.
   */
  async release(isEnd: boolean): Promise<Buffer[]> {
    const runs = this.#runs();
    const released = isEnd ? new Set(this.#held) : this.#releasable(runs);
    await this.#mask(runs, released);
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

  /** The held text of each run, in order of first appearance. */
  #runs(): Map<string, HeldRun> {
    const runs = new Map<string, HeldRun>();
    // By each name that ends them: a search through all runs for each event would take as long as the square of their number.
    const open = new Map<string, string[]>();
    const end = (name: string): void => {
      for (const run of open.get(name) ?? []) {
        const held = runs.get(run);
        if (held !== undefined) runs.set(run, { ...held, hasEnded: true });
      }
      open.delete(name);
    };
    for (const { frame, texts } of this.#held) {
      for (const { run, part, form, path, now, isPlain, isWhole = false, isRepeated } of texts) {
        if (isRepeated) continue;
        const before = runs.get(run);
        const isArguments = isWhole ? path.at(-1) === 'arguments' : isPlain !== true;
        const json = part === 'toolCalls' && isArguments;
        runs.set(run, { part, form, json, text: (before?.text ?? '') + now, hasEnded: isWhole, isWhole });
        if (isWhole || before?.hasEnded === false) continue;
        for (const name of endingNames(run)) {
          const others = open.get(name);
          if (others === undefined) open.set(name, [run]);
          else others.push(run);
        }
      }
      for (const name of frame.content.ends ?? []) end(name);
    }
    return runs;
  }

  /** The events that can be sent, in order, while the overlap of every unfinished run stays held. */
  #releasable(runs: ReadonlyMap<string, HeldRun>): Set<HeldEvent> {
    const room = new Map<string, number>();
    for (const [run, { text, hasEnded }] of runs)
      room.set(run, hasEnded ? text.length : text.length - LIMITS.guardrailOverlap);
    const waiting = new Set<string>();
    const released = new Set<HeldEvent>();
    for (const event of this.#held) {
      const { lanes, follows } = event.frame.content;
      for (const { run, now, isRepeated } of event.texts)
        if (!isRepeated) room.set(run, (room.get(run) ?? 0) - now.length);
      const isOverlap = event.texts.some(({ run, isRepeated }) => !isRepeated && (room.get(run) ?? 0) < 0);
      if (isOverlap || follows.some((lane) => waiting.has(lane))) for (const lane of lanes) waiting.add(lane);
      else released.add(event);
    }
    return released;
  }

  /** Checks the texts of which something is about to be sent, and changes the held events. */
  async #mask(runs: ReadonlyMap<string, HeldRun>, released: ReadonlySet<HeldEvent>): Promise<void> {
    const sizes = new Map<string, number>();
    for (const { texts } of released)
      for (const { run, now, isRepeated } of texts)
        if (!isRepeated) sizes.set(run, (sizes.get(run) ?? 0) + now.length);
    const checks = [...sizes].flatMap(([run, decided]) => {
      const held = runs.get(run);
      return held === undefined ? [] : { ...held, run, decided: held.hasEnded ? held.text.length : decided };
    });
    if (checks.length === 0) return;
    // Events repeat the same few whole texts, of which one check is enough.
    const distinct: typeof checks = [];
    const whole = new Map<string, number>();
    const placeOf = checks.map((each) => {
      const known = each.isWhole ? whole.get(passedKey(each)) : undefined;
      if (known !== undefined) return known;
      if (each.isWhole) whole.set(passedKey(each), distinct.length);
      return distinct.push(each) - 1;
    });
    const results = await this.#check(
      distinct.map(({ run, part, form, json, text, decided }) => ({
        role: 'assistant',
        content: text,
        part,
        ...((form === 'url' || form === 'fixed') && { form }),
        before: this.#before.get(run) ?? '',
        ...(json && { json: this.#json.get(run) ?? JSON_START }),
        ...(decided < text.length && { decided }),
      })),
    );
    for (const [index, { run, text, decided }] of checks.entries()) {
      const masked = results[placeOf[index] ?? 0] ?? '';
      // A change of the overlap only is left to the next check: what is found there may be longer.
      if (masked !== text && (decided === text.length || commonPrefix(text, masked) < decided))
        this.#replace(run, masked);
    }
  }

  #replace(run: string, masked: string): void {
    const slots = this.#held.flatMap(({ texts }) =>
      texts.filter((text) => text.run === run && !text.isRepeated),
    );
    const parts = distributed(
      slots.map(({ now }) => now),
      masked,
    );
    for (const [index, slot] of slots.entries()) {
      const part = parts[index] ?? '';
      // No event describes a text that another event has as a whole.
      if (part !== slot.now && slot.isWhole !== true) this.#masked.add(slot.channel);
      slot.now = part;
    }
  }

  /** The bytes of an event with its texts as they are now; undefined if it must be removed. */
  #written({ frame, texts }: HeldEvent): Buffer | undefined {
    const changes: Change[] = [];
    for (const text of texts) {
      if (text.isRepeated) text.now = this.#repeated?.sent(text.channel) ?? '';
      else this.#repeated?.send(text.channel, text.now);
      const { path, now, derived = [] } = text;
      if (!text.isWhole && !text.isRepeated) {
        this.#before.set(text.run, text.text.slice(-1));
        if (text.part === 'toolCalls')
          this.#json.set(text.run, placeAfter(this.#json.get(text.run) ?? JSON_START, text.text));
      }
      if (now === text.text) {
        if (text.isWhole === true && text.text.length <= PASSED_LENGTH && this.#passed.size < MAX_PASSED)
          this.#passed.add(passedKey(text));
        continue;
      }
      changes.push({ path, json: jsonOf(text, frame.value) }, ...derived);
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

/** What is written in place of a text that has changed. */
function jsonOf({ path, form, encode, now }: HeldText, event: unknown): string {
  if (form === 'derived' || form === 'alternatives') {
    const value = path.reduce((inner: unknown, step) => membersOf(inner)?.[step], event);
    return Array.isArray(value) ? '[]' : 'null';
  }
  if (path.length === 0) return now;
  return JSON.stringify(encode === undefined ? now : encode(now));
}

const passedKey = ({ part, form, text }: Pick<HeldRun, 'part' | 'form' | 'text'>): string =>
  `${part} ${form ?? 'text'} ${text}`;

/** Characters and number of texts that are remembered as checked. */
const PASSED_LENGTH = 256;
const MAX_PASSED = 1_024;

/** Words of the longest name that ends channels (4), and some of ids. What follows is a path of the provider, with any number of spaces. */
const GROUP_WORDS = 8;

/** The names that end a run: `ALL`, its own, and those of the groups that it belongs to, such as `0` and `0 arguments`. */
function endingNames(run: string): string[] {
  const names = [ALL, run];
  let at = run.indexOf(' ');
  for (let words = 0; at !== -1 && words < GROUP_WORDS; words += 1) {
    names.push(run.slice(0, at));
    at = run.indexOf(' ', at + 1);
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
  readonly run: string;
  /** The event has the whole text of its channel. */
  readonly isWhole?: boolean;
  /** It repeats the text of a channel whose events came before. */
  readonly isRepeated: boolean;
  /** The text after the last check. */
  now: string;
}

interface HeldRun {
  readonly part: EventText['part'];
  readonly form?: EventText['form'] | undefined;
  /** Whether the text is JSON. */
  readonly json: boolean;
  readonly text: string;
  /** No event can continue the text. */
  readonly hasEnded: boolean;
  /** One event has all of it. */
  readonly isWhole: boolean;
}

function charactersOf(texts: readonly HeldText[]): number {
  return texts.reduce((sum, { now, isRepeated }) => (isRepeated ? sum : sum + now.length), 0);
}
