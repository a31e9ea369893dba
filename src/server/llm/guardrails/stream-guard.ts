import { LIMITS } from '../../../core/limits.ts';
import { dataOf } from '../frames.ts';
import { membersOf, parseOrNothing } from '../json-members.ts';
import { forEachText, NestingError, type TextPath } from '../texts.ts';
import { dropLogprobs } from './guarded-texts.ts';
import { failed } from './guardrails.ts';

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

type Json = Record<string | number, unknown>;

/**
 * Identifies one of the texts that a stream assembles event by event: the content of a choice, its reasoning, or the
 * arguments of a tool call. JSON text of the choice index and the path within the choice.
 */
type Channel = string;

/** An event of a stream, held back for guardrails. */
interface HeldFrame {
  readonly bytes: Buffer;
  /** The parsed event; undefined if it is not JSON. */
  readonly value: Json | undefined;
  /** Text by channel; empty if the event contains no text. */
  readonly texts: ReadonlyMap<Channel, string>;
  /** Indexes of its choices. */
  readonly choices: readonly number[];
  /** Whether it ends a choice or the stream, so that no later text may be sent after it. */
  readonly isLast: boolean;
  /** A comment, which readers ignore. It need not be held. */
  readonly isComment: boolean;
}

/** Parses an event. Throws an `AppError` (503) if it is nested too deeply to check. */
function readFrame(bytes: Buffer): HeldFrame {
  const data = dataOf(bytes);
  if (data === undefined)
    return { bytes, value: undefined, texts: new Map(), choices: [], isLast: false, isComment: true };
  return withValue(bytes, data === '[DONE]' ? undefined : membersOf(parseOrNothing(data)));
}

/** The index of the choice that a channel belongs to. */
function choiceOf(channel: Channel): number {
  return Number.parseInt(channel.slice(1), 10);
}

/**
 * Splits an event into events with masked texts, in pieces of at most 64 characters, so that the guardrail overlap can
 * be kept at that granularity. Ids and names of tool calls are sent before the texts, `finish_reason` after them.
 */
function maskedFrames(frame: HeldFrame, masked: ReadonlyMap<Channel, string>): HeldFrame[] {
  const { value, texts } = frame;
  if (value === undefined || texts.size === 0) return [frame];
  const rest = choicesOf(value).map(withoutTexts);
  const pieces = [...masked].flatMap(([channel, text]) =>
    (text.match(/[\s\S]{1,64}/gu) ?? []).map((piece) => textFrame(value, channel, piece)),
  );
  const introduces = rest.filter(hasContent);
  const ends = rest.filter(({ finish_reason: reason }) => (reason ?? null) !== null);
  return [
    ...(introduces.length === 0
      ? []
      : [frameOf({ ...value, choices: introduces.map((choice) => ({ ...choice, finish_reason: null })) })]),
    ...pieces,
    ...(ends.length === 0 ? [] : [frameOf({ ...value, choices: ends.map(endOf) })]),
  ];
}

function withValue(bytes: Buffer, value: Json | undefined): HeldFrame {
  const texts = new Map<Channel, string>();
  const choices = choicesOf(value);
  for (const [position, choice] of choices.entries()) {
    const index = indexOf(choice, position);
    visitTexts(choice, (text, path) => {
      const channel: Channel = JSON.stringify([index, ...path]);
      texts.set(channel, (texts.get(channel) ?? '') + text);
    });
  }
  return {
    bytes,
    value,
    texts,
    choices: choices.map(indexOf),
    isLast: choices.length === 0 || choices.some(({ finish_reason: reason }) => (reason ?? null) !== null),
    isComment: false,
  };
}

function visitTexts(choice: Json, visit: (text: string, path: TextPath) => void): void {
  try {
    forEachText(choice, visit, indexOf);
  } catch (error) {
    if (error instanceof NestingError) throw failed('response', 'a text is nested too deeply');
    throw error;
  }
}

function choicesOf(value: Json | undefined): Json[] {
  const choices = value?.['choices'];
  return Array.isArray(choices)
    ? choices.filter((choice): choice is Json => typeof choice === 'object' && choice !== null)
    : [];
}

/** The position of a choice or tool call in its list: events contain parts of lists, identified by `index`. */
function indexOf(item: unknown, position: number): number {
  const index = (item as { index?: unknown } | null)?.index;
  return typeof index === 'number' && Number.isInteger(index) && index >= 0 && index < MAX_INDEX
    ? index
    : position;
}

// More than any provider allows.
const MAX_INDEX = 1_024;

const frameOf = (value: Json): HeldFrame =>
  withValue(Buffer.from(`data: ${JSON.stringify(value)}\n\n`), value);

/** An event with only this text of one channel. */
function textFrame(value: Json, channel: Channel, text: string): HeldFrame {
  const [index, ...path] = JSON.parse(channel) as [number, ...TextPath];
  const choice = choicesOf(value).find((candidate, position) => indexOf(candidate, position) === index);
  const member = nested(path, text) as Json;
  const { role } = (choice?.['delta'] ?? {}) as Json;
  if (role !== undefined && typeof member['delta'] === 'object')
    member['delta'] = { role, ...member['delta'] };
  return frameOf({ ...value, choices: [{ index, ...member, finish_reason: null }] });
}

function nested([step, ...rest]: TextPath, text: string): unknown {
  if (step === undefined) return text;
  const inner = nested(rest, text);
  if (typeof step === 'string') return { [step]: inner };
  return [typeof inner === 'object' ? { index: step, ...inner } : inner];
}

/** A choice without its texts: ids and names of tool calls, and `finish_reason`. */
function withoutTexts(choice: Json): Json {
  const copy = structuredClone(choice);
  const paths: TextPath[] = [];
  forEachText(copy, (_, path) => paths.push(path));
  for (const path of paths) {
    const owner = path.slice(0, -1).reduce((inner: Json, step) => inner[step] as Json, copy);
    const last = path.at(-1) as string | number;
    if (Array.isArray(owner)) owner[last as number] = '';
    else delete owner[last];
  }
  dropLogprobs(copy);
  return copy;
}

/** Whether a choice without texts still contains anything that the client needs. */
function hasContent({ index: _index, finish_reason: _reason, logprobs: _logprobs, ...rest }: Json): boolean {
  const isRelevant = (value: unknown, key: string): boolean => {
    if (key === 'role' || key === 'index' || value === null || value === '') return false;
    if (typeof value !== 'object') return true;
    return Object.entries(value as object).some(([inner, member]) => isRelevant(member, inner));
  };
  return isRelevant(rest, '');
}

function endOf(choice: Json): Json {
  const { index, finish_reason: reason } = choice;
  return 'delta' in choice
    ? { index, delta: {}, finish_reason: reason }
    : { index, text: '', finish_reason: reason };
}
